/* A program that runs with another user's rights: what its caller's variables say is not for it. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/cmocka.h"
#include "support/tmpdir.h"
#include "sys/env.h"

enum { NOBODY = 65534 };

#define NAME "KILN_TEST_VARIABLE"

/* How this program, copied to `path`, exits: whether it sees the variable. */
static int run_copy(const char *path)
{
    int status = 0;
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)execl(path, path, "see", (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void S6_another_users_rights_take_no_variables(void **state)
{
    size_t size = 0;
    struct statvfs facts;
    assert_int_equal(statvfs(*state, &facts), 0);
    if (geteuid() != 0 || (facts.f_flag & ST_NOSUID) != 0) {
        print_message("SKIP: only root gives a program another user's rights\n");
        skip();
    }
    char *path = kt_at(*state, "program");
    char *program = kt_file_read("/proc/self/exe", &size);
    assert_non_null(program);
    kt_file_write(path, program, size);
    assert_int_equal(setenv(NAME, "on", 1), 0);
    assert_int_equal(chmod(path, 0755), 0);
    assert_int_equal(run_copy(path), 1);
    assert_int_equal(chown(path, NOBODY, NOBODY), 0);
    assert_int_equal(chmod(path, 04755), 0);
    assert_int_equal(run_copy(path), 0);
    assert_int_equal(unsetenv(NAME), 0);
    free(program);
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "see") == 0) {
        _exit(kn_env_get(NAME) != NULL ? 1 : 0); /* a leak check cannot look at such a process */
    }
    const struct CMUnitTest tests[] = {
        kt_dir_test(S6_another_users_rights_take_no_variables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
