/* How many processors this process may use; see thread.h. Windows has no quota of this kind that a
 * process could ask for without a job object. */
#include <windows.h>

#include "sys/processor.h"
#include "sys/thread.h"

uint32_t kn_thread_quota(const char *groups_file, const char *mount)
{
    (void)groups_file;
    (void)mount;
    return UINT32_MAX;
}

uint32_t kn_thread_processors(void)
{
    DWORD_PTR mine = 0;
    DWORD_PTR all = 0;
    uint32_t count = 0;
    /* The mask is of one group of 64; it is 0 for a process that spans several. */
    if (GetProcessAffinityMask(GetCurrentProcess(), &mine, &all) != 0) {
        for (; mine != 0; mine &= mine - 1) {
            count++;
        }
    }
    if (count == 0) {
        count = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
    }
    return count > 0 ? count : 1;
}

uint64_t kn_memory_limit(void)
{
    const uint64_t all = kn_processor_memory();
    return all != 0 ? all : UINT64_MAX;
}
