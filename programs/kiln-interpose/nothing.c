/* What `kiln exec` preloads into a program of 32 bits: nothing. The loader prints a line for a
 * library that it cannot load, and this one it can. As an auditor (rtld-audit(7)) it asks to be
 * left out. */
unsigned int la_version(unsigned int version);
unsigned int la_version(unsigned int version)
{
    (void)version;
    return 0;
}
