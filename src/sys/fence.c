/* Process-wide memory barriers. */
#include "sys/fence.h"

#ifdef _WIN32

#include <windows.h>

bool kn_fence_available(void)
{
    return true;
}

bool kn_fence_register(void)
{
    return true;
}

void kn_fence_everywhere(void)
{
    FlushProcessWriteBuffers();
}

#elif defined(__linux__)

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

static long call_membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0);
}

bool kn_fence_available(void)
{
    const int needed = MEMBARRIER_CMD_GLOBAL | MEMBARRIER_CMD_PRIVATE_EXPEDITED |
                       MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
    long commands = call_membarrier(MEMBARRIER_CMD_QUERY);
    return commands > 0 && (commands & needed) == needed;
}

bool kn_fence_register(void)
{
    return call_membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;
}

void kn_fence_everywhere(void)
{
    if (call_membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0) {
        (void)call_membarrier(MEMBARRIER_CMD_GLOBAL);
    }
}

#else

bool kn_fence_available(void)
{
    return false;
}

bool kn_fence_register(void)
{
    return false;
}

void kn_fence_everywhere(void)
{
}

#endif
