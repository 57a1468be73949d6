/* Child processes: results, bounds, and what they do not inherit. */
#include "sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cmocka.h"
#include "support/failalloc.h"
#include "support/skip.h"
#include "support/tmpdir.h"
#include "sys/clock.h"
#include "sys/thread.h"
#include "sys/umask.h"

#define SECOND UINT64_C(1000000000)

static kn_process_result run_shell(const char *script, kn_process_request extra)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL};
    kn_process_result result;
    kiln_diag diag = KILN_DIAG_INIT;
    extra.argv = argv;
    if (kn_process_run(&extra, &result, &diag) != KILN_OK) {
        fail_msg("%s: %s", diag.what, diag.why);
    }
    return result;
}

static void output_and_exit_code_come_back(void **state)
{
    kn_process_result r = run_shell("echo out; echo err >&2; exit 3", (kn_process_request){0});
    assert_int_equal(r.exit_code, 3);
    assert_int_equal(r.signal, 0);
    assert_false(r.timed_out);
    assert_string_equal(r.out, "out\n");
    assert_string_equal(r.err, "err\n");
    assert_int_equal(r.out_size, 4);
    assert_int_equal(r.err_size, 4);
    kn_process_result_deinit(&r);
    r = run_shell(":", (kn_process_request){0});
    assert_int_equal(r.exit_code, 0);
    assert_null(r.out);
    assert_null(r.err);
    kn_process_result_deinit(&r);
}

static void look_whether_private(void *user)
{
    const mode_t mask = umask(S_IRWXG | S_IRWXO);
    *(bool *)user = mask == (S_IRWXG | S_IRWXO);
    (void)umask(mask);
}

/* The program keeps its own. */
static void E15_a_child_has_the_owners_rights(void **state)
{
    bool is_private = false;
    kn_umask_run_private(look_whether_private, &is_private);
    if (!is_private) {
        print_message("unshare(2) is refused here\n");
        skip();
        return;
    }
    const mode_t old = umask(0777);
    kn_process_result r = run_shell("umask", (kn_process_request){0});
    const mode_t still = umask(0022);
    assert_int_equal(still, 0777);
    assert_string_equal(r.out, "0077\n");
    kn_process_result_deinit(&r);
    r = run_shell("umask", (kn_process_request){0});
    assert_string_equal(r.out, "0022\n");
    kn_process_result_deinit(&r);
    (void)umask(old);
}

static void a_signal_is_told(void **state)
{
    kn_process_result r = run_shell("kill -SEGV $$", (kn_process_request){0});
    assert_int_equal(r.exit_code, -1);
    assert_int_equal(r.signal, SIGSEGV);
    assert_string_equal(kn_process_signal_name(r.signal), "SIGSEGV");
    assert_string_equal(kn_process_signal_name(9999), "an unknown signal");
    assert_int_equal(kn_process_id(), getpid());
    kn_process_result_deinit(&r);
}

static void what_cannot_start_is_unavailable(void **state)
{
    const char *const argv[] = {"/nowhere/cc", NULL};
    const char *const sh[] = {"/bin/sh", "-c", ":", NULL};
    kn_process_result r;
    kiln_diag diag = KILN_DIAG_INIT;
    assert_int_equal(kn_process_run(&(kn_process_request){.argv = argv}, &r, &diag),
                     KILN_E_UNAVAILABLE);
    assert_int_equal(diag.vendor_code, ENOENT);
    assert_non_null(strstr(diag.what, "/nowhere/cc"));
    assert_int_equal(r.exit_code, -1);
    if (!kn_test_is_emulated()) { /* QEMU forks for vfork(2): the child's error gets lost */
        assert_int_equal(
            kn_process_run(&(kn_process_request){.argv = sh, .dir = "/nowhere"}, &r, &diag),
            KILN_E_UNAVAILABLE);
    }
    kiln_diag_clear(&diag);
}

static void input_of_any_size_is_read_or_not(void **state)
{
    size_t size = (size_t)3 << 20;
    char *input = malloc(size);
    assert_non_null(input);
    for (size_t i = 0; i < size; i++) {
        input[i] = (char)(i * 7);
    }
    kn_process_result r = run_shell(
        "cat", (kn_process_request){.input = input, .input_size = size, .output_limit = 2 * size});
    assert_int_equal(r.out_size, size);
    assert_memory_equal(r.out, input, size);
    kn_process_result_deinit(&r);
    r = run_shell("exit 4",
                  (kn_process_request){.input = input, .input_size = size}); /* no SIGPIPE */
    assert_int_equal(r.exit_code, 4);
    kn_process_result_deinit(&r);
    r = run_shell("cat", (kn_process_request){.input = "", .input_size = 0});
    assert_int_equal(r.out_size, 0);
    kn_process_result_deinit(&r);
    r = run_shell("cat", (kn_process_request){0}); /* /dev/null, not the terminal */
    assert_int_equal(r.exit_code, 0);
    kn_process_result_deinit(&r);
    free(input);
}

/* Past the limit a write would end this program by SIGXFSZ. */
static void input_over_the_limit_on_files_is_refused(void **state)
{
    static const char *const argv[] = {"/bin/cat", NULL};
    static char input[20000];
    struct rlimit before, low;
    kiln_diag diag = KILN_DIAG_INIT;
    kn_process_result r;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    low = (struct rlimit){.rlim_cur = sizeof input - 1, .rlim_max = before.rlim_max};
    const kn_process_request request = {.argv = argv, .input = input, .input_size = sizeof input};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    const kiln_status status = kn_process_run(&request, &r, &diag);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, KILN_E_UNAVAILABLE);
    assert_int_equal(diag.vendor_code, EFBIG);
    assert_non_null(strstr(diag.fix, "ulimit -f"));
    kiln_diag_clear(&diag);
}

static void output_is_bounded_and_the_rest_dropped(void **state)
{
    kn_process_result r = run_shell("head -c 5000000 /dev/zero; head -c 10 /dev/zero >&2; exit 5",
                                    (kn_process_request){.output_limit = 1000});
    assert_int_equal(r.exit_code, 5);
    assert_int_equal(r.out_size, 1000);
    assert_int_equal(r.err_size, 10);
    kn_process_result_deinit(&r);
    r = run_shell("head -c 3000000 /dev/zero", (kn_process_request){0});
    assert_int_equal(r.out_size, 1 << 20);
    kn_process_result_deinit(&r);
}

static bool is_gone(pid_t pid)
{
    for (int i = 0; i < 200; i++) { /* the orphan is init's to collect */
        char path[64];
        char *text;
        (void)snprintf(path, sizeof path, "/proc/%d", (int)pid);
        if (!kt_file_exists(path)) {
            return true;
        }
        (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
        FILE *file = fopen(path, "r");
        char line[256] = "";
        if (file == NULL || fgets(line, sizeof line, file) == NULL) {
            line[0] = '\0';
        }
        if (file != NULL) {
            (void)fclose(file);
        }
        text = strrchr(line, ')');
        if (text != NULL && text[1] != '\0' && text[2] == 'Z') {
            return true;
        }
        kn_clock_sleep(SECOND / 100);
    }
    return false;
}

static void P2_the_limit_ends_the_whole_group(void **state)
{
    uint64_t start = kn_clock_now();
    kn_process_result r = run_shell("echo before; sleep 100 & echo $!; wait",
                                    (kn_process_request){.limit_ns = SECOND / 4});
    uint64_t took = kn_clock_now() - start;
    assert_true(r.timed_out);
    assert_int_equal(r.exit_code, -1);
    assert_int_equal(r.signal, SIGKILL);
    assert_true(took >= SECOND / 4 && took < 20 * SECOND);
    assert_non_null(r.out);
    assert_memory_equal(r.out, "before\n", 7);
    assert_true(is_gone((pid_t)strtol(r.out + 7, NULL, 10)));
    kn_process_result_deinit(&r);
}

static void P2_a_child_that_never_stops_writing_is_limited(void **state)
{
    kn_process_result r =
        run_shell("trap '' TERM; yes; yes >&2",
                  (kn_process_request){.limit_ns = SECOND / 5, .output_limit = 10});
    assert_true(r.timed_out);
    assert_int_equal(r.out_size, 10);
    kn_process_result_deinit(&r);
}

static void a_descendant_that_keeps_the_pipes_is_not_waited_for(void **state)
{
    uint64_t start = kn_clock_now();
    kn_process_result r =
        run_shell("sleep 60 & echo $!; exit 6", (kn_process_request){.limit_ns = 50 * SECOND});
    assert_true(kn_clock_now() - start < 30 * SECOND);
    assert_int_equal(r.exit_code, 6);
    assert_false(r.timed_out);
    (void)kill((pid_t)strtol(r.out, NULL, 10), SIGKILL);
    kn_process_result_deinit(&r);
}

static void no_descriptor_but_three_is_inherited(void **state)
{
    int leaky = open("/dev/null", O_RDONLY); /* as a driver would: without O_CLOEXEC */
    assert_true(leaky >= 3);
    int high = fcntl(leaky, F_DUPFD, 200);
    assert_true(high >= 200);
    /* ls itself opens one to look. */
    kn_process_result r =
        run_shell("ls /proc/self/fd | wc -l; test ! -e /proc/self/fd/200 && echo ok",
                  (kn_process_request){0});
    assert_string_equal(r.out, "4\nok\n");
    kn_process_result_deinit(&r);
    (void)close(leaky);
    (void)close(high);
}

static void signals_dir_group_and_environment_are_set(void **state)
{
    static const char *const extra[] = {"KT_ONE=1 = one", "KT_TWO=new", NULL};
    sigset_t all;
    sigset_t old;
    (void)setenv("KT_TWO", "old", 1);
    (void)setenv("KT_TWO_MORE", "kept", 1);
    (void)sigfillset(&all);
    assert_int_equal(sigprocmask(SIG_BLOCK, &all, &old), 0);
    void (*before)(int) = signal(SIGINT, SIG_IGN);
    kn_process_result r =
        run_shell("echo \"$KT_ONE|$KT_TWO|$KT_TWO_MORE\"; env | grep -c ^KT_TWO=; pwd; "
                  "sed -n 's/^Sig\\(Blk\\|Ign\\).*\\(......\\)$/\\1 \\2/p' /proc/self/status; "
                  "test $(ps -o pgid= -p $$ 2>/dev/null || cut -d' ' -f5 /proc/$$/stat) -eq $$ && "
                  "echo leader",
                  (kn_process_request){.environment = extra, .dir = "/usr"});
    (void)signal(SIGINT, before);
    assert_int_equal(sigprocmask(SIG_SETMASK, &old, NULL), 0);
    assert_string_equal(r.out, "1 = one|new|kept\n1\n/usr\nBlk 000000\n"
                               "Ign 000000\nleader\n");
    kn_process_result_deinit(&r);
}

/* Runs `body` in a fork and gives its exit status, because it spoils the process it runs in. */
static int in_fork(int (*body)(void))
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        _exit(body());
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int without_standard_descriptors(void)
{
    const char *const argv[] = {"/bin/sh", "-c", "cat; echo err >&2", NULL};
    kn_process_result r;
    (void)close(0);
    (void)close(1);
    (void)close(2);
    kiln_status status = kn_process_run(
        &(kn_process_request){.argv = argv, .input = "in", .input_size = 2}, &r, NULL);
    bool good = status == KILN_OK && r.out_size == 2 && memcmp(r.out, "in", 2) == 0 &&
                r.err_size == 4 && memcmp(r.err, "err\n", 4) == 0;
    kn_process_result_deinit(&r);
    return good ? 0 : 1;
}

static int with_ignored_children(void)
{
    const char *const argv[] = {"/bin/sh", "-c", "exit 0", NULL};
    kn_process_result r;
    kiln_diag diag = KILN_DIAG_INIT;
    (void)signal(SIGCHLD, SIG_IGN);
    kiln_status status = kn_process_run(&(kn_process_request){.argv = argv}, &r, &diag);
    bool good = status == KILN_E_UNAVAILABLE && strstr(diag.fix, "SIGCHLD") != NULL;
    kiln_diag_clear(&diag);
    return good ? 0 : 1;
}

static void closed_standard_descriptors_do_no_harm(void **state)
{
    assert_int_equal(in_fork(without_standard_descriptors), 0);
}

static void a_program_that_ignores_children_is_told(void **state)
{
    assert_int_equal(in_fork(with_ignored_children), 0);
}

static size_t open_descriptors(void)
{
    return kt_file_count("/proc/self/fd");
}

static bool run_once(void *user)
{
    const char *const argv[] = {"/bin/sh", "-c", "echo out; echo err >&2", NULL};
    kn_process_result r;
    size_t before = open_descriptors();
    kiln_status status = kn_process_run(
        &(kn_process_request){.argv = argv, .input = "x", .input_size = 1}, &r, NULL);
    kn_process_result_deinit(&r);
    assert_int_equal(open_descriptors(), before);
    assert_true(status == KILN_OK || status == KILN_E_NOMEM);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no zombie */
    return status == KILN_OK;
}

static void want_of_memory_leaves_no_child_and_no_descriptor(void **state)
{
    for (uint64_t n = 1;; n++) {
        kt_failalloc_arm(n, false);
        const char *const argv[] = {"/bin/sh", "-c", "echo out; echo err >&2", NULL};
        kn_process_result r;
        kiln_status status = kn_process_run(&(kn_process_request){.argv = argv}, &r, NULL);
        bool fired = kt_failalloc_fired();
        kt_failalloc_disarm();
        kn_process_result_deinit(&r);
        assert_int_equal(status, fired ? KILN_E_NOMEM : KILN_OK);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        if (!fired) {
            assert_int_equal(n, 4); /* the environment and the two outputs */
            break;
        }
    }
    assert_true(run_once(NULL));
}

/* --- tags ------------------------------------------------------------------------------------- */

/* Starts a child that waits to be killed. *out_tag: its tag, as the child itself reports it. */
static pid_t start_child(void (*wait)(void), uint32_t *out_tag)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const uint32_t tag = kn_process_tag();
        (void)alarm(60);
        if (write(ends[1], &tag, sizeof tag) == (ssize_t)sizeof tag) {
            wait();
        }
        _exit(1);
    }
    assert_int_equal(read(ends[0], out_tag, sizeof *out_tag), (int)sizeof *out_tag);
    assert_int_equal(close(ends[0]), 0);
    assert_int_equal(close(ends[1]), 0);
    return child;
}

static void wait_for_ever(void)
{
    for (;;) {
        (void)pause();
    }
}

static void a_process_is_halted_while_it_is_stopped(void **state)
{
    uint32_t tag = 0;
    siginfo_t ended;
    const pid_t child = start_child(wait_for_ever, &tag);
    assert_int_not_equal(tag, 0);
    assert_int_not_equal(tag, kn_process_tag());
    assert_false(kn_process_is_halted(tag));
    assert_false(kn_process_is_halted(kn_process_tag()));
    assert_true(kn_process_is_halted(tag ^ UINT32_C(1) << 31)); /* an earlier process' */
    assert_int_equal(kill(child, SIGSTOP), 0);
    assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
    assert_true(kn_process_is_halted(tag));
    assert_int_equal(kill(child, SIGCONT), 0);
    assert_int_equal(waitpid(child, NULL, WCONTINUED), child);
    assert_false(kn_process_is_halted(tag));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitid(P_PID, (id_t)child, &ended, WEXITED | WNOWAIT), 0);
    assert_true(kn_process_is_halted(tag)); /* and nobody has asked for its status */
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(kn_process_is_halted(tag));
}

static void run_for_ever(void *user)
{
    wait_for_ever();
}

static void leave_a_thread(void)
{
    kn_thread *thread = NULL;
    if (kn_thread_start(run_for_ever, NULL, &thread, NULL) == KILN_OK) {
        pthread_exit(NULL);
    }
}

static char state_of(pid_t process)
{
    char path[64], text[512];
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    assert_int_equal(fclose(file), 0);
    return strrchr(text, ')')[2];
}

static void a_process_whose_first_thread_has_ended_is_not_halted(void **state)
{
    uint32_t tag = 0;
    if (kn_test_is_emulated()) {
        skip();
    }
    const pid_t child = start_child(leave_a_thread, &tag);
    for (const uint64_t end = kn_clock_now() + 30 * SECOND; state_of(child) != 'Z';) {
        assert_true(kn_clock_now() < end);
        kn_clock_sleep(SECOND / 1000);
    }
    assert_false(kn_process_is_halted(tag));
    assert_int_equal(kill(child, SIGSTOP), 0);
    assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
    assert_true(kn_process_is_halted(tag)); /* the others are */
    assert_int_equal(kill(child, SIGCONT), 0);
    assert_int_equal(waitpid(child, NULL, WCONTINUED), child);
    assert_false(kn_process_is_halted(tag));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(kn_process_is_halted(tag));
}

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif
enum { NOT_ALLOWED = 77 };

/* 0 where a process that has another clock is told so. */
static int ask_on_another_clock(void)
{
    const uint64_t own = kn_process_clock();
    int status = 1;
    if (own == 0 || unshare(CLONE_NEWTIME) != 0) {
        return NOT_ALLOWED;
    }
    const pid_t child = fork(); /* the first that has it */
    if (child == 0) {
        const uint64_t other = kn_process_clock();
        _exit(other == 0 || other == own);
    }
    return child > 0 && waitpid(child, &status, 0) == child ? status != 0 : 1;
}

static void a_process_knows_who_has_another_clock(void **state)
{
    int status = 0;
    assert_true(kn_process_clock() == kn_process_clock());
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(ask_on_another_clock());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NOT_ALLOWED) {
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(output_and_exit_code_come_back),
        cmocka_unit_test(E15_a_child_has_the_owners_rights),
        cmocka_unit_test(a_signal_is_told),
        cmocka_unit_test(what_cannot_start_is_unavailable),
        cmocka_unit_test(input_of_any_size_is_read_or_not),
        cmocka_unit_test(input_over_the_limit_on_files_is_refused),
        cmocka_unit_test(output_is_bounded_and_the_rest_dropped),
        cmocka_unit_test(P2_the_limit_ends_the_whole_group),
        cmocka_unit_test(P2_a_child_that_never_stops_writing_is_limited),
        cmocka_unit_test(a_descendant_that_keeps_the_pipes_is_not_waited_for),
        cmocka_unit_test(no_descriptor_but_three_is_inherited),
        cmocka_unit_test(signals_dir_group_and_environment_are_set),
        cmocka_unit_test(closed_standard_descriptors_do_no_harm),
        cmocka_unit_test(a_program_that_ignores_children_is_told),
        cmocka_unit_test(want_of_memory_leaves_no_child_and_no_descriptor),
        cmocka_unit_test(a_process_is_halted_while_it_is_stopped),
        cmocka_unit_test(a_process_whose_first_thread_has_ended_is_not_halted),
        cmocka_unit_test(a_process_knows_who_has_another_clock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
