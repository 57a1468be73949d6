/* What finding out about a compiler takes: which children are started, and that those which need
 * nothing of one another run at once
 * about. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/cmocka.h"

#include "apis/cpu/backend/toolchain.h"
#include "base/text.h"
#include "support/skip.h"
#include "support/tmpdir.h"
#include "unit/backends/cpu/rig.h"

static int forget(void **state)
{
    unsetenv("KILN_CC");
    return kt_tmpdir_teardown(state);
}

static unsigned lines_in(const char *dir, const char *name)
{
    char *path = kt_at(dir, name);
    const unsigned count = kt_file_lines(path);
    return count;
}

/* Each of the five waits until all have come, for ten seconds at most. */
static void the_compiler_is_asked_at_once(void **state)
{
    static const char script[] = "#!/bin/sh\n"
                                 "here=${0%/*} turns=0\n"
                                 "echo \"$1\" >>\"$here/asked\"\n"
                                 "until [ \"$(grep -c . \"$here/asked\")\" -ge 5 ]; do\n"
                                 "    sleep 0.02\n"
                                 "    turns=$((turns + 1))\n"
                                 "    [ $turns -lt 500 ] || exit 1\n"
                                 "done\n"
                                 "exec gcc \"$@\"\n";
    char *dir = *state;
    rig r;
    if (system("command -v gcc >/dev/null") != 0) { /* NOLINT(cert-env33-c) */
        skip();
        return;
    }
    char *path = rig_script(dir, "waiting", script);
    setenv("KILN_CC", path, 1);
    rig_open(&r, NULL);
    char *identity = rig_identity(&r, &r.target);
    assert_non_null(strstr(identity, "tool=cc1 ")); /* which -v names, and nobody asks for */
    assert_non_null(strstr(identity, "tool=collect2 "));
    assert_non_null(strstr(identity, "tool=as "));
    assert_non_null(strstr(identity, "tool=ld "));
    assert_int_equal(lines_in(dir, "asked"), 5);
    free(identity);
    rig_close(&r);
    free(path);
}

/* It says nowhere what it runs. */
static void a_compiler_without_commands_is_asked_for_cc1(void **state)
{
    static const char script[] = "#!/bin/sh\n"
                                 "echo \"$1\" >>\"${0%/*}/asked\"\n"
                                 "[ \"$1\" = -v ] || exec gcc \"$@\"\n"
                                 "gcc \"$@\" 2>&1 | grep -v '/cc1 ' >&2\n";
    char *dir = *state;
    rig r;
    if (system("command -v gcc >/dev/null") != 0) { /* NOLINT(cert-env33-c) */
        skip();
        return;
    }
    char *path = rig_script(dir, "silent", script);
    setenv("KILN_CC", path, 1);
    rig_open(&r, NULL);
    char *identity = rig_identity(&r, &r.target);
    assert_non_null(strstr(identity, "tool=cc1 "));
    assert_int_equal(lines_in(dir, "asked"), 6);
    free(identity);
    rig_close(&r);
    free(path);
}

/* When the first answer is in, the program begins to ignore SIGCHLD: the rest is reaped unseen. */
static void *ignore_children(void *user)
{
    const char *dir = user;
    char *first = kt_at(dir, "first");
    char *go = kt_at(dir, "go");
    while (!kt_file_exists(first)) {
        (void)usleep(1000);
    }
    char *text = kt_file_read(first, NULL);
    char process[64];
    (void)snprintf(process, sizeof(process), "/proc/%ld", strtol(text, NULL, 10));
    while (access(process, F_OK) == 0) {
        (void)usleep(1000);
    }
    (void)signal(SIGCHLD, SIG_IGN);
    kt_file_write(go, "", 0);
    free(text);
    return NULL;
}

static void K12_a_program_that_reaps_children_is_told(void **state)
{
    static const char script[] = "#!/bin/sh\n"
                                 "here=${0%/*}\n"
                                 "if [ \"$1\" = -v ]; then\n"
                                 "    gcc \"$@\"\n"
                                 "    echo $$ >\"$here/.first\"\n"
                                 "    mv \"$here/.first\" \"$here/first\"\n"
                                 "    exit 0\n"
                                 "fi\n"
                                 "until [ -e \"$here/go\" ]; do sleep 0.02; done\n"
                                 "exec gcc \"$@\"\n";
    static const kiln_host host = {0};
    char *dir = *state;
    cpu_tools tools;
    const cpu_toolchain *found = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    pthread_t thread;
    if (system("command -v gcc >/dev/null") != 0) { /* NOLINT(cert-env33-c) */
        skip();
        return;
    }
    char *path = rig_script(dir, "reaped", script);
    setenv("KILN_CC", path, 1);
    kn_cpu_tools_init(&tools, &host);
    assert_int_equal(pthread_create(&thread, NULL, ignore_children, dir), 0);
    const kiln_status status = kn_cpu_toolchain_get(&tools, &found, &diag);
    (void)signal(SIGCHLD, SIG_DFL);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(status, KILN_E_UNAVAILABLE);
    assert_non_null(strstr(diag.why, "was taken by another part of this program"));
    assert_non_null(strstr(diag.fix, "SIGCHLD"));
    kiln_diag_clear(&diag);
    kn_cpu_tools_deinit(&tools);
    free(path);
}

int main(void)
{
#define F(f) cmocka_unit_test_setup_teardown(f, kt_tmpdir_setup, forget)
    const struct CMUnitTest tests[] = {
        F(the_compiler_is_asked_at_once),
        F(a_compiler_without_commands_is_asked_for_cc1),
        F(K12_a_program_that_reaps_children_is_told),
    };
    unsetenv("KILN_CC");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
