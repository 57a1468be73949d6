/* Running a child process with bounded time and output; see process.h.
 *
 * Input is handed over as a file that goes away with its last handle, output comes through two
 * pipes that are looked at a hundred times a second. The child and all that it starts are one job,
 * which can be killed as a whole. It inherits three handles and no others. */
#include "sys/process.h"

#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "sys/clock.h"
#include "sys/fail.h"
#include "sys/file.h"
#include "sys/paths.h"
#include "sys/random.h"
#include "sys/windows/access.h"
#include "sys/windows/command.h"
#include "sys/windows/wide.h"

#define DEFAULT_OUTPUT ((size_t)1 << 20)
#define GRACE_NS UINT64_C(1000000000)
#define TICK_MS 10
#define MAX_BLOCKS                                                                                 \
    64 /* taken in one go: a child that never stops writing must not hide its limit                \
        */
#define LEAST_EXCEPTION 0xc0000000u
#define ENDED_BY_US 0xc000013au /* as if it was stopped from its console */

typedef struct child {
    HANDLE process;
    HANDLE job;
    HANDLE standard[3]; /* its ends, which it inherits */
    HANDLE reading[2];  /* our ends of its 1 and 2 */
    kn_strbuf output[2];
    uint64_t deadline_ns; /* 0: none */
    bool ended, timed_out;
} child;

static void close_child_handle(HANDLE *handle)
{
    if (*handle != NULL && *handle != INVALID_HANDLE_VALUE) {
        (void)CloseHandle(*handle);
    }
    *handle = NULL;
}

/* ---- preparing ---- */

static bool fill_input(HANDLE file, const char *from, size_t left)
{
    while (left > 0) {
        DWORD n = 0;
        if (WriteFile(file, from, left < (1u << 30) ? (DWORD)left : 1u << 30, &n, NULL) == 0) {
            return false;
        }
        from += n;
        left -= n;
    }
    return SetFilePointerEx(file, (LARGE_INTEGER){.QuadPart = 0}, NULL, FILE_BEGIN) != 0;
}

static HANDLE open_input(const kn_process_request *request)
{
    SECURITY_ATTRIBUTES inherited = {.nLength = sizeof inherited, .bInheritHandle = TRUE};
    if (request->input == NULL) {
        return CreateFileW(L"NUL", GENERIC_READ, KN_SHARE_ALL, &inherited, OPEN_EXISTING, 0, NULL);
    }
    char name[48];
    HANDLE file = INVALID_HANDLE_VALUE;
    char *dir = kn_paths_temporary();
    kn_text_putf(name, sizeof name, "kiln-input-%016llx", (unsigned long long)kn_random_u64());
    char *path = dir != NULL ? kn_path_join(dir, name) : NULL;
    wchar_t *wide = path != NULL ? kn_wide_path(path) : NULL;
    if (wide != NULL) {
        file = CreateFileW(wide, GENERIC_READ | GENERIC_WRITE | DELETE, KN_SHARE_ALL, &inherited,
                           CREATE_NEW, FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, NULL);
    }
    free(wide);
    free(path);
    free(dir);
    if (file != INVALID_HANDLE_VALUE && !fill_input(file, request->input, request->input_size)) {
        close_child_handle(&file);
    }
    return file;
}

static bool open_pipe(HANDLE *out_reading, HANDLE *out_writing)
{
    SECURITY_ATTRIBUTES inherited = {.nLength = sizeof inherited, .bInheritHandle = TRUE};
    return CreatePipe(out_reading, out_writing, &inherited, 0) != 0 &&
           SetHandleInformation(*out_reading, HANDLE_FLAG_INHERIT, 0) != 0;
}

/* ---- starting ---- */

/* A job that ends with its last handle, which is ours alone: however this process ends, the child
 * and what that has started go with it. NULL: there is none. */
static HANDLE make_job(void)
{
    JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits = {
        .BasicLimitInformation = {.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE}};
    HANDLE job = CreateJobObjectW(NULL, NULL);
    if (job != NULL && SetInformationJobObject(job, JobObjectExtendedLimitInformation, &limits,
                                               sizeof limits) == 0) {
        (void)CloseHandle(job);
        job = NULL;
    }
    return job;
}

/* 0 or the error. The child begins to run as part of its job. */
static DWORD create_child(child *c, const kn_command *command)
{
    PROCESS_INFORMATION made = {0};
    STARTUPINFOEXW start = {.StartupInfo = {.cb = sizeof start,
                                            .dwFlags = STARTF_USESTDHANDLES,
                                            .hStdInput = c->standard[0],
                                            .hStdOutput = c->standard[1],
                                            .hStdError = c->standard[2]}};
    SIZE_T size = 0;
    DWORD error = ERROR_SUCCESS;
    (void)InitializeProcThreadAttributeList(NULL, 1, 0, &size); /* says the size, and fails */
    start.lpAttributeList = malloc(size);
    if (start.lpAttributeList == NULL) {
        return ERROR_NOT_ENOUGH_MEMORY;
    }
    if (InitializeProcThreadAttributeList(start.lpAttributeList, 1, 0, &size) == 0) {
        error = GetLastError();
        free(start.lpAttributeList);
        return error;
    }
    if (UpdateProcThreadAttribute(start.lpAttributeList, 0, PROC_THREAD_ATTRIBUTE_HANDLE_LIST,
                                  c->standard, sizeof c->standard, NULL, NULL) == 0 ||
        CreateProcessW(command->program, command->line, NULL, NULL, TRUE,
                       CREATE_SUSPENDED | CREATE_NO_WINDOW | CREATE_NEW_PROCESS_GROUP |
                           CREATE_UNICODE_ENVIRONMENT | EXTENDED_STARTUPINFO_PRESENT,
                       command->environment, command->dir, &start.StartupInfo, &made) == 0) {
        error = GetLastError();
    } else {
        /* Without a job the limit ends the child alone. */
        c->job = make_job();
        if (c->job != NULL && AssignProcessToJobObject(c->job, made.hProcess) == 0) {
            close_child_handle(&c->job);
        }
        c->process = made.hProcess;
        (void)ResumeThread(made.hThread);
        (void)CloseHandle(made.hThread);
    }
    DeleteProcThreadAttributeList(start.lpAttributeList);
    free(start.lpAttributeList);
    return error;
}

static kiln_status start_child(child *c, const kn_process_request *request, kiln_diag *diag)
{
    const char *program = request->argv[0];
    kn_command command;
    c->standard[0] = open_input(request);
    if (c->standard[0] == INVALID_HANDLE_VALUE || c->standard[0] == NULL ||
        !open_pipe(&c->reading[0], &c->standard[1]) ||
        !open_pipe(&c->reading[1], &c->standard[2])) {
        return kn_fail(diag, KILN_E_UNAVAILABLE, (int)GetLastError(), "cannot start", program);
    }
    if (!kn_command_init(&command, request)) {
        return kn_fail(diag, KILN_E_UNAVAILABLE, (int)GetLastError(), "cannot start", program);
    }
    DWORD error = create_child(c, &command);
    kn_command_deinit(&command);
    if (error != ERROR_SUCCESS) {
        return kn_fail(diag, KILN_E_UNAVAILABLE, (int)error, "cannot start", program);
    }
    uint64_t now = kn_clock_now();
    if (request->limit_ns != 0 && request->limit_ns < UINT64_MAX - GRACE_NS - now) {
        c->deadline_ns = now + request->limit_ns;
    }
    return KILN_OK;
}

/* ---- watching ---- */

/* Takes what has come through one pipe. What is over the limit is read and dropped, so that the
 * child never waits for us. */
static void drain_output(child *c, int which)
{
    char block[16384];
    kn_strbuf *output = &c->output[which];
    for (int blocks = 0; blocks < MAX_BLOCKS; blocks++) {
        DWORD there = 0;
        DWORD n = 0;
        if (PeekNamedPipe(c->reading[which], NULL, 0, NULL, &there, NULL) == 0 || there == 0 ||
            ReadFile(c->reading[which], block, there < sizeof block ? there : sizeof block, &n,
                     NULL) == 0) {
            return;
        }
        size_t room = output->limit - output->length;
        kn_strbuf_append(output, block, n < room ? n : room);
    }
}

static void check_deadline(child *c, bool *out_lost)
{
    if (c->deadline_ns == 0 || kn_clock_now() < c->deadline_ns) {
        return;
    }
    *out_lost = c->timed_out; /* the grace is over, too */
    if (!c->timed_out) {
        c->timed_out = true;
        c->deadline_ns += GRACE_NS;
        (void)(c->job != NULL ? TerminateJobObject(c->job, ENDED_BY_US)
                              : TerminateProcess(c->process, ENDED_BY_US));
    }
}

static void watch_child(child *c)
{
    bool lost = false;
    while (!c->ended && !lost) {
        c->ended = WaitForSingleObject(c->process, TICK_MS) == WAIT_OBJECT_0;
        drain_output(c, 0);
        drain_output(c, 1);
        if (!c->ended) {
            check_deadline(c, &lost);
        }
    }
    /* Its last words. A descendant that lives on may hold the pipes: nobody waits for that one. */
    drain_output(c, 0);
    drain_output(c, 1);
}

/* ---- the whole ---- */

static kiln_status give_result(child *c, kn_process_result *out, const char *program,
                               kiln_diag *diag)
{
    DWORD code = 0;
    if (!kn_strbuf_ok(&c->output[0]) || !kn_strbuf_ok(&c->output[1])) {
        return kn_fail_nomem(diag, "cannot keep the output of", program);
    }
    out->timed_out = c->timed_out;
    if (c->ended && GetExitCodeProcess(c->process, &code) != 0) {
        if (code >= LEAST_EXCEPTION) {
            out->signal = (int)code;
        } else {
            out->exit_code = (int)code;
        }
    }
    if (c->output[0].length > 0) {
        out->out = kn_strbuf_detach(&c->output[0], &out->out_size);
    }
    if (c->output[1].length > 0) {
        out->err = kn_strbuf_detach(&c->output[1], &out->err_size);
    }
    return KILN_OK;
}

kiln_status kn_process_run(const kn_process_request *request, kn_process_result *out_result,
                           kiln_diag *diag)
{
    child c = {0};
    size_t limit = request->output_limit != 0 ? request->output_limit : DEFAULT_OUTPUT;

    *out_result = (kn_process_result){.exit_code = -1};
    kn_strbuf_init(&c.output[0], limit);
    kn_strbuf_init(&c.output[1], limit);

    kiln_status status = start_child(&c, request, diag);
    for (int i = 0; i < 3; i++) {
        close_child_handle(&c.standard[i]);
    }
    if (status == KILN_OK) {
        watch_child(&c);
        status = give_result(&c, out_result, request->argv[0], diag);
    }
    close_child_handle(&c.reading[0]);
    close_child_handle(&c.reading[1]);
    close_child_handle(&c.process);
    close_child_handle(&c.job);
    kn_strbuf_deinit(&c.output[0]);
    kn_strbuf_deinit(&c.output[1]);
    return status;
}

void kn_process_result_deinit(kn_process_result *result)
{
    free(result->out);
    free(result->err);
    *result = (kn_process_result){.exit_code = -1};
}

void kn_process_rights(char *text, size_t size)
{
    kn_access_user(text, size);
}

uint32_t kn_process_id(void)
{
    return GetCurrentProcessId();
}

size_t kn_process_ancestry(uint32_t *out_ids, size_t room)
{
    if (room == 0) {
        return 0;
    }
    out_ids[0] = kn_process_id();
    return 1; /* a parent may be gone, and its number another's */
}

uint64_t kn_process_space(void)
{
    return 0;
}

uint64_t kn_process_clock(void)
{
    return 0;
}

uint32_t kn_process_tag(void)
{
    return 0;
}

bool kn_process_is_halted(uint32_t tag)
{
    (void)tag;
    return false;
}

const char *kn_process_signal_name(int signal)
{
    static const struct {
        unsigned code;
        const char *name;
    } names[] = {{0xc0000005u, "an access violation"},      {0xc0000006u, "a read error on a page"},
                 {0xc000001du, "an illegal instruction"},   {0xc0000094u, "a division by zero"},
                 {0xc00000fdu, "a stack overflow"},         {0xc0000135u, "a missing DLL"},
                 {0xc0000139u, "a DLL of another version"}, {0xc0000374u, "a damaged heap"},
                 {0xc0000409u, "a failed check"},           {ENDED_BY_US, "being stopped"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (names[i].code == (unsigned)signal) {
            return names[i].name;
        }
    }
    return "an unknown exception";
}
