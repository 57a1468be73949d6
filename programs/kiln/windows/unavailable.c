/* What rests on calls that Windows does not have: programs under kiln (`kiln exec`, `kiln doctor --
 * PROGRAM`, recorded programs that are replayed by calls) take a loader that can be given what to
 * load first; packs in registries of images take skopeo. Each says so in one line. */
#include <stdint.h>
#include <string.h>

#include "cmd/doctor_program.h"
#include "cmd/ship_command.h"
#include "exec/environment.h"
#include "exec/helper.h"
#include "exec/python.h"

static kiln_status refuse_here(kiln_diag *diag, const char *what)
{
    return kiln_diag_set(diag, KILN_E_UNAVAILABLE, "use Linux or WSL for it", what,
                         "it is not available on Windows");
}

static exit_code fail_here(const cmd_context *context, const char *what)
{
    kiln_diag diag = KILN_DIAG_INIT;
    (void)refuse_here(&diag, what);
    return cmd_fail(context, &diag);
}

/* --- programs under kiln ---------------------------------------------------------------------- */

typedef struct exec_options {
    bool unused; /* there are none */
} exec_options;

static const opt_spec exec_specs[] = {OPT_END};

static exit_code refuse_exec(const cmd_context *context, void *fields, const opt_list *arguments)
{
    (void)fields;
    (void)arguments;
    return fail_here(context, "starting programs under kiln");
}

const cli_command cmd_exec = {
    .name = "exec",
    .usage = "-- PROGRAM [ARGUMENTS]",
    .summary = "Starts a program with kiln under the compilers that it calls",
    .details = "Not available on Windows.",
    .options = exec_specs,
    .options_size = sizeof(exec_options),
    .min_arguments = 0,
    .max_arguments = SIZE_MAX,
    .run = refuse_exec,
};

exit_code doctor_program_run(const cmd_context *context, const opt_list *arguments, bool json)
{
    (void)arguments;
    (void)json;
    return fail_here(context, "examining a program");
}

void doctor_program_judge(doctor_problems *problems)
{
    (void)problems;
}

void doctor_program_print_troubles(cli_pool *pool)
{
    (void)pool;
}

json_t *doctor_program_troubles_json(cli_pool *pool)
{
    (void)pool;
    return json_array();
}

/* Nothing of kiln's is in a program's way here. */
bool exec_environment_leave_layer(cli_pool *pool)
{
    (void)pool;
    return true;
}

const char *exec_python_bytecode(cli_pool *pool, const char *program)
{
    (void)pool;
    (void)program;
    return NULL;
}

kiln_status exec_helpers_create(cli_pool *pool, host_mutex *mutex, const char *cache_root,
                                const char *recording, exec_helpers **out_helpers, kiln_diag *diag)
{
    (void)pool;
    (void)mutex;
    (void)cache_root;
    (void)recording;
    (void)diag;
    *out_helpers = NULL; /* the calls are refused one by one */
    return KILN_OK;
}

void exec_helpers_destroy(exec_helpers *helpers)
{
    (void)helpers;
}

kiln_status exec_helpers_call(exec_helpers *helpers, const char *name, size_t index,
                              const kiln_key *wanted, const char *target, kn_replay_answer *out,
                              kiln_diag *diag)
{
    (void)helpers;
    (void)index;
    (void)wanted;
    (void)target;
    *out = (kn_replay_answer){.diag = KILN_DIAG_INIT};
    return refuse_here(diag, name);
}

bool exec_helpers_compile(exec_helpers *helpers, const char *name, size_t index, const char *target,
                          kn_replay_answer *out, kiln_status *out_status, kiln_diag *diag)
{
    (void)helpers, (void)name, (void)index, (void)target, (void)out, (void)out_status, (void)diag;
    return false;
}

uint64_t exec_helpers_put_failures(const exec_helpers *helpers)
{
    (void)helpers;
    return 0;
}

/* --- registries of images --------------------------------------------------------------------- */

bool ship_is_meant(const opt_list *arguments)
{
    static const char *const schemes[] = {"oci://", "oci+http://"};
    for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
        if (arguments->count > 0 &&
            strncmp(arguments->items[0], schemes[i], strlen(schemes[i])) == 0) {
            return true;
        }
    }
    return false;
}

exit_code ship_push_command(const cmd_context *context, const transfer_options *options,
                            const opt_list *arguments)
{
    (void)options;
    return fail_here(context, arguments->items[0]);
}

exit_code ship_pull_command(const cmd_context *context, const transfer_options *options,
                            const opt_list *arguments)
{
    (void)options;
    return fail_here(context, arguments->items[0]);
}
