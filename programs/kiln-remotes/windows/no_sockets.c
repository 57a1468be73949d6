/* hiredis' own connections, which the module does not use (its bytes travel over wire.c) and which
 * want POSIX sockets: none is made. The linker asks for these, and then drops them with their
 * callers. */
#include <string.h>

#include <hiredis/hiredis.h>
#include <hiredis/net.h>

char *strerror_r(int error, char *text, size_t size);

char *strerror_r(int error, char *text, size_t size)
{
    return strerror_s(text, size, error) == 0 ? text : NULL;
}

static int refuse_connection(redisContext *context)
{
    context->err = REDIS_ERR_OTHER;
    (void)strncpy(context->errstr, "there are no sockets here", sizeof context->errstr - 1);
    return REDIS_ERR;
}

int redisContextSetTimeout(redisContext *c, const struct timeval tv)
{
    (void)tv;
    return refuse_connection(c);
}

int redisContextConnectTcp(redisContext *c, const char *addr, int port,
                           const struct timeval *timeout)
{
    (void)addr;
    (void)port;
    (void)timeout;
    return refuse_connection(c);
}

int redisContextConnectBindTcp(redisContext *c, const char *addr, int port,
                               const struct timeval *timeout, const char *source_addr)
{
    (void)addr;
    (void)port;
    (void)timeout;
    (void)source_addr;
    return refuse_connection(c);
}

int redisContextConnectUnix(redisContext *c, const char *path, const struct timeval *timeout)
{
    (void)path;
    (void)timeout;
    return refuse_connection(c);
}

int redisKeepAlive(redisContext *c, int interval)
{
    (void)interval;
    return refuse_connection(c);
}
