/* A library to be opened by tests; each build of it says another number. */
int toy_value(void);
int toy_extra(void);
int toy_nobody_has_this(void);

int toy_value(void)
{
#ifdef TOY_BROKEN
    return toy_nobody_has_this();
#else
    return TOY_VALUE;
#endif
}

#ifdef TOY_EXTRA
int toy_extra(void)
{
    return 10 * TOY_VALUE;
}
#endif
