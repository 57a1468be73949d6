/* cli/host.h for Windows: time, threads and the console. Files are in host_files.c. */
#include "cli/host.h"

#include <io.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include <fcntl.h>

#include "windows/wide.h"

static const uint64_t second_ns = 1000000000u;

uint64_t host_now(void)
{
    LARGE_INTEGER ticks;
    LARGE_INTEGER rate;
    (void)QueryPerformanceFrequency(&rate); /* neither fails since Windows XP */
    (void)QueryPerformanceCounter(&ticks);
    const uint64_t now = (uint64_t)ticks.QuadPart;
    const uint64_t per_second = (uint64_t)rate.QuadPart;
    return now / per_second * second_ns + now % per_second * second_ns / per_second;
}

int64_t host_wall(void)
{
    const int64_t epoch = INT64_C(116444736000000000); /* 1970, in units of 100 ns since 1601 */
    FILETIME now;
    GetSystemTimePreciseAsFileTime(&now);
    return ((int64_t)((uint64_t)now.dwHighDateTime << 32 | now.dwLowDateTime) - epoch) * 100;
}

void host_sleep(uint64_t ns)
{
    Sleep((DWORD)((ns + 999999) / 1000000));
}

/* --- standard streams ------------------------------------------------------------------------- */

static UINT former_code_page;

static void restore_code_page(void)
{
    (void)SetConsoleOutputCP(former_code_page);
}

/* Text is UTF-8 with "\n", as elsewhere, so that what is piped or compared is the same everywhere.
 * The C library writes a character at a time to what has no buffer: both streams get one, and
 * cli/console.c flushes what should be seen at once. */
void host_keep_streams(void)
{
    for (int fd = 0; fd <= 2; fd++) {
        if (_get_osfhandle(fd) == -1 || _get_osfhandle(fd) == -2) {
            /* The wrong way round, so that using it fails as it would have. */
            (void)_open("NUL", fd == 0 ? _O_WRONLY : _O_RDONLY);
        }
        (void)_setmode(fd, _O_BINARY);
    }
    (void)setvbuf(stdout, NULL, _IOFBF, BUFSIZ);
    (void)setvbuf(stderr, NULL, _IOFBF, BUFSIZ);
    if (host_is_terminal(stdout) || host_is_terminal(stderr)) {
        former_code_page = GetConsoleOutputCP();
        if (former_code_page != 0 && SetConsoleOutputCP(CP_UTF8) != 0) {
            (void)atexit(restore_code_page);
        }
    }
}

/* NULL: the stream is not a console. */
static HANDLE console_of(FILE *file, DWORD *out_mode)
{
    const int fd = _fileno(file);
    HANDLE handle = fd >= 0 ? (HANDLE)_get_osfhandle(fd) : INVALID_HANDLE_VALUE;
    return handle != INVALID_HANDLE_VALUE && GetConsoleMode(handle, out_mode) != 0 ? handle : NULL;
}

bool host_is_terminal(FILE *file)
{
    DWORD mode = 0;
    return console_of(file, &mode) != NULL;
}

bool host_can_draw(FILE *file)
{
    DWORD mode = 0;
    HANDLE console = console_of(file, &mode);
    return console != NULL &&
           SetConsoleMode(console, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING) != 0;
}

bool host_reader_is_gone(FILE *file)
{
    const int fd = _fileno(file);
    return fd >= 0 && GetFileType((HANDLE)_get_osfhandle(fd)) == FILE_TYPE_PIPE;
}

unsigned host_columns(void)
{
    CONSOLE_SCREEN_BUFFER_INFO info;
    if (GetConsoleScreenBufferInfo(GetStdHandle(STD_ERROR_HANDLE), &info) != 0 &&
        info.srWindow.Right >= info.srWindow.Left) {
        return (unsigned)(info.srWindow.Right - info.srWindow.Left) + 1;
    }
    return 80;
}

/* --- threads ---------------------------------------------------------------------------------- */

struct host_mutex {
    SRWLOCK native;
};

host_mutex *host_mutex_create(void)
{
    host_mutex *mutex = calloc(1, sizeof(*mutex));
    if (mutex != NULL) {
        InitializeSRWLock(&mutex->native);
    }
    return mutex;
}

void host_mutex_destroy(host_mutex *mutex)
{
    free(mutex);
}

void host_mutex_lock(host_mutex *mutex)
{
    AcquireSRWLockExclusive(&mutex->native);
}

void host_mutex_unlock(host_mutex *mutex)
{
    ReleaseSRWLockExclusive(&mutex->native);
}

struct host_thread {
    HANDLE native;
    host_thread_fn *run;
    void *user;
};

static DWORD WINAPI begin_thread(void *opaque)
{
    const host_thread *thread = opaque;
    thread->run(thread->user);
    return 0;
}

host_thread *host_thread_create(host_thread_fn *run, void *user)
{
    host_thread *thread = calloc(1, sizeof(*thread));
    if (thread != NULL) {
        thread->run = run;
        thread->user = user;
        thread->native = CreateThread(NULL, 0, begin_thread, thread, 0, NULL);
    }
    if (thread != NULL && thread->native == NULL) {
        free(thread);
        return NULL;
    }
    return thread;
}

void host_thread_join(host_thread *thread)
{
    (void)WaitForSingleObject(thread->native, INFINITE);
    (void)CloseHandle(thread->native);
    free(thread);
}

size_t host_processors(void)
{
    const DWORD count = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
    return count > 0 ? count : 1;
}

uint64_t host_memory(void)
{
    MEMORYSTATUSEX memory = {.dwLength = sizeof(memory)};
    return GlobalMemoryStatusEx(&memory) != 0 ? memory.ullTotalPhys : 0;
}

/* --- the environment -------------------------------------------------------------------------- */

const char *host_variable(cli_pool *pool, const char *name)
{
    wchar_t *wide = wide_text(name);
    const DWORD room = wide != NULL ? GetEnvironmentVariableW(wide, NULL, 0) : 0;
    wchar_t *value = room > 0 ? malloc(room * sizeof(*value)) : NULL;
    char *narrow = NULL;
    const char *kept = NULL;
    if (value != NULL && GetEnvironmentVariableW(wide, value, room) < room) {
        narrow = narrow_text(value);
    }
    if (narrow != NULL) {
        kept = pool_text(pool, narrow, strlen(narrow));
    }
    free(narrow);
    free(value);
    free(wide);
    return kept;
}

bool host_set_variable(const char *name, const char *value)
{
    wchar_t *wide = wide_text(name);
    wchar_t *text = value != NULL ? wide_text(value) : NULL;
    const bool set =
        wide != NULL && (value == NULL || text != NULL) && SetEnvironmentVariableW(wide, text) != 0;
    free(text);
    free(wide);
    return set;
}

void host_each_variable(void (*visit)(void *user, const char *variable), void *user)
{
    wchar_t *block = GetEnvironmentStringsW();
    for (const wchar_t *at = block; at != NULL && *at != L'\0'; at += wcslen(at) + 1) {
        char *text = narrow_text(at);
        if (text != NULL) {
            visit(user, text);
        }
        free(text);
    }
    if (block != NULL) {
        (void)FreeEnvironmentStringsW(block);
    }
}

/* --- a second process ----------------------------------------------------------------------- */

host_side host_split(int *out_code, int *out_signal)
{
    (void)out_code;
    (void)out_signal;
    return HOST_WHOLE;
}

void *host_share(size_t size)
{
    (void)size;
    return NULL;
}

const char *host_signal_name(int number)
{
    (void)number;
    return "it exited";
}

/* --- Ctrl-C ----------------------------------------------------------------------------------- */

static volatile LONG ending;

/* What the library started has a process group of its own, which the console's event does not
 * reach, and is in a job that ends with this process. The exit code is the system's for a program
 * that was stopped from its console. */
static BOOL WINAPI on_event(DWORD event)
{
    (void)event;
    (void)InterlockedExchange(&ending, 1);
    return FALSE; /* the next handler, which is the system's, ends the process */
}

void host_pass_on_interrupts(void)
{
    (void)SetConsoleCtrlHandler(on_event, TRUE);
}

bool host_is_ending(void)
{
    return InterlockedCompareExchange(&ending, 0, 0) != 0;
}

void host_end_if_interrupted(void)
{
    while (host_is_ending()) {
        Sleep(INFINITE); /* the other thread ends the process */
    }
}
