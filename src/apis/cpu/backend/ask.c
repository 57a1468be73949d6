/* Short child processes, one after the other or all at once. This file must not know what they are
 * asked. */
#include "apis/cpu/backend/ask.h"

#include "sys/thread.h"

#define ASK_LIMIT_NS ((uint64_t)10 * 1000000000u)
#define AT_ONCE 8u

typedef struct asking {
    const char *dir;
    char *const *lists; /* of directories for headers: CPU_SEARCH_LISTS, each may be NULL */
    cpu_ask *ask;
    kn_thread *thread; /* NULL: the caller asks */
} asking;

static void run_ask(void *user)
{
    const asking *a = (const asking *)user;
    const char *environment[4 + CPU_SEARCH_LISTS] = {"LC_ALL=C", "LANGUAGE=C"};
    size_t count = 2;
    for (size_t i = 0; i < CPU_SEARCH_LISTS; i++) {
        if (a->lists[i] != NULL) {
            environment[count++] = a->lists[i];
        }
    }
    environment[count] = a->ask->variable;
    const kn_process_request request = {
        .argv = a->ask->argv, .environment = environment, .dir = a->dir, .limit_ns = ASK_LIMIT_NS};
    a->ask->status = kn_process_run(&request, &a->ask->result, a->ask->diag);
}

static void ask_some(const char *dir, char *const *lists, cpu_ask *asks, size_t count)
{
    asking askings[AT_ONCE];
    for (size_t i = count; i-- > 0;) {
        askings[i] = (asking){.dir = dir, .lists = lists, .ask = &asks[i]};
        if (i == 0 || kn_thread_start(run_ask, &askings[i], &askings[i].thread, NULL) != KILN_OK) {
            askings[i].thread = NULL;
            run_ask(&askings[i]);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (askings[i].thread != NULL) {
            kn_thread_join(askings[i].thread);
        }
    }
}

void kn_cpu_ask_together(const char *dir, cpu_ask *asks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        asks[i].status = KILN_E_UNAVAILABLE;
        asks[i].result = (kn_process_result){.exit_code = -1};
    }
    char *lists[CPU_SEARCH_LISTS];
    const kiln_status status = kn_cpu_search_lists(lists);
    for (size_t i = 0; status == KILN_OK && i < count; i += AT_ONCE) {
        ask_some(dir, lists, asks + i, count - i < AT_ONCE ? count - i : AT_ONCE);
    }
    kn_cpu_search_lists_free(lists);
}

void kn_cpu_asks_deinit(cpu_ask *asks, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        kn_process_result_deinit(&asks[i].result);
    }
}
