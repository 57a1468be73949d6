/* See hostcc.h. */
#include "support/fakecuda/hostcc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/lies.h"

bool hostcc_init(hostcc *unit, const char *text, int header_count, const char *const *headers,
                 const char *const *names)
{
    memset(unit, 0, sizeof(*unit));
    if (header_count > HOSTCC_HEADERS) {
        return false;
    }
    unit->text = strdup(text);
    for (int i = 0; i < header_count; i++) {
        unit->header_names[i] = strdup(names[i]);
        unit->header_texts[i] = strdup(headers[i]);
    }
    unit->header_count = header_count;
    return true;
}

void hostcc_deinit(hostcc *unit)
{
    for (int i = 0; i < unit->expression_count; i++) {
        free(unit->expressions[i]);
        free(unit->lowered[i]);
    }
    for (int i = 0; i < unit->header_count; i++) {
        free(unit->header_names[i]);
        free(unit->header_texts[i]);
    }
    free(unit->text);
    free(unit->log);
    free(unit->object);
}

bool hostcc_add_expression(hostcc *unit, const char *name)
{
    char lowered[2000] = "";
    size_t used = 0;
    bool plain = true;
    for (const char *p = name; *p != '\0' && used < sizeof(lowered) - 8; p++) {
        bool word = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') ||
                    (*p >= '0' && *p <= '9') || *p == '_';
        plain = plain && word;
        lowered[used++] = *p;
        lowered[used - 1] = word ? *p : '_';
    }
    char *text = NULL;
    if (unit->expression_count == HOSTCC_EXPRESSIONS ||
        asprintf(&text, "%s%s", plain ? "" : "_Zfake_", lowered) < 0) {
        return false;
    }
    unit->lowered[unit->expression_count] = text;
    unit->expressions[unit->expression_count++] = strdup(name);
    return true;
}

bool hostcc_lower(const hostcc *unit, const char *name, const char *query, const char **lowered)
{
    for (int i = 0; i < unit->expression_count; i++) {
        if (strcmp(unit->expressions[i], name) == 0) {
            uint64_t number = 0;
            *lowered = lie_is_told(query, "value", &number) ? NULL : unit->lowered[i];
            return true;
        }
    }
    return false;
}

/* --- what is given ---------------------------------------------------------------------------- */

size_t hostcc_size(const char *query, size_t size)
{
    return (size_t)lie_or(query, "length", size);
}

void hostcc_give(const char *query, char *to, const char *from, size_t size)
{
    const size_t room = hostcc_size(query, size);
    memcpy(to, from, room < size ? room : size);
}

static const char *log_of(const hostcc *unit)
{
    return unit->log != NULL ? unit->log : "";
}

size_t hostcc_log_size(const hostcc *unit, const char *query)
{
    return hostcc_size(query, strlen(log_of(unit)) + 1);
}

void hostcc_give_log(const hostcc *unit, const char *query, char *to)
{
    const size_t room = hostcc_log_size(unit, query);
    if (room > strlen(log_of(unit))) {
        (void)strcpy(to, log_of(unit));
    } else {
        memset(to, 'x', room); /* without an end */
    }
}

/* --- compiling -------------------------------------------------------------------------------- */

static bool write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    return file != NULL && fputs(text, file) >= 0 && fclose(file) == 0;
}

/* "extern __shared__ int tmp[];" has no host counterpart: a pointer takes its place. */
static void write_kernel(FILE *file, const char *text)
{
    static const char mark[] = "extern __shared__ ";
    const char *at = NULL;
    while ((at = strstr(text, mark)) != NULL) {
        char type[64];
        char name[64];
        (void)fwrite(text, 1, (size_t)(at - text), file);
        if (sscanf(at + sizeof(mark) - 1, "%63s %63[^[]", type, name) != 2) {
            break;
        }
        (void)fprintf(file, "%s *%s = reinterpret_cast<%s *>(kt_shared);", type, name, type);
        text = strchr(at, ';') + 1;
    }
    (void)fputs(text, file);
}

static void write_callers(FILE *file, const hostcc *unit)
{
    static const char mark[] = "__global__ void ";
    for (const char *at = unit->text; (at = strstr(at, mark)) != NULL;) {
        char name[128];
        at += sizeof(mark) - 1;
        const char *line = at;
        while (line > unit->text && line[-1] != '\n') {
            line--;
        }
        if (strncmp(line, "extern \"C\"", 10) == 0 && sscanf(at, "%127[^( ]", name) == 1) {
            (void)fprintf(file, "\nKT_KERNEL(%s, %s)", name, name);
        }
    }
    for (int i = 0; i < unit->expression_count; i++) {
        if (strncmp(unit->lowered[i], "_Zfake_", 7) == 0) {
            (void)fprintf(file, "\nKT_KERNEL(%s, (%s))", unit->lowered[i], unit->expressions[i]);
        } else { /* a name that is not there does not compile, as with the real one */
            (void)fprintf(file, "\n[[maybe_unused]] static const auto kt_named_%d = &%s;", i,
                          unit->expressions[i]);
        }
    }
    (void)fputs("\n", file);
}

static bool write_source(const hostcc *unit, const char *dir)
{
    char path[400];
    (void)snprintf(path, sizeof(path), "%s/k.cpp", dir);
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        return false;
    }
    (void)fprintf(file, "#define KT_BARRIER %d\n#include \"%s\"\n#line 1 \"kernel.cu\"\n",
                  strstr(unit->text, "__syncthreads") != NULL, FAKE_PRELUDE);
    write_kernel(file, unit->text);
    write_callers(file, unit);
    (void)fclose(file);
    for (int i = 0; i < unit->header_count; i++) {
        (void)snprintf(path, sizeof(path), "%s/%s", dir, unit->header_names[i]);
        if (!write_text(path, unit->header_texts[i])) {
            return false;
        }
    }
    return true;
}

static char *read_whole(const char *path, size_t *out_size)
{
    struct stat facts;
    int file = open(path, O_RDONLY);
    *out_size = 0;
    if (file < 0 || fstat(file, &facts) != 0) {
        return NULL;
    }
    char *bytes = calloc(1, (size_t)facts.st_size + 17);
    if (bytes != NULL && read(file, bytes + 16, (size_t)facts.st_size) == facts.st_size) {
        *out_size = (size_t)facts.st_size;
    }
    (void)close(file);
    return bytes;
}

#ifndef FAKE_CXX
#define FAKE_CXX "c++" /* else that of the machine which the tests are for */
#endif

/* Runs c++ on directory/k.cpp; its words go to log.txt there. Directories in options may be
 * relative. */
static bool run_compiler(const char *dir, int count, const char *const *options)
{
    char in[400];
    char out[400];
    char words[400];
    const char *argv[256] = {FAKE_CXX, "-std=c++17", "-x",  "c++", "-shared", "-fPIC",
                             "-O1",    "-w",         "-I",  dir,   "-o",      out,
                             in,       "-nostdlib",  "-lm", "-lc"};
    int used = 16;
    (void)snprintf(in, sizeof(in), "%s/k.cpp", dir);
    (void)snprintf(out, sizeof(out), "%s/k.so", dir);
    (void)snprintf(words, sizeof(words), "%s/log.txt", dir);
    for (int i = 0; i < count && used < 250; i++) {
        if (strncmp(options[i], "--include-path=", 15) == 0) {
            argv[used++] = "-I";
            argv[used++] = options[i] + 15;
        }
        if (strncmp(options[i], "-D", 2) == 0 || strncmp(options[i], "-I", 2) == 0 ||
            strncmp(options[i], "-U", 2) == 0) {
            argv[used++] = options[i];
        }
    }
    pid_t child = fork();
    if (child == 0) {
        int log = open(words, O_WRONLY | O_CREAT, 0600);
        (void)unsetenv("LD_PRELOAD");
        (void)dup2(log, 1);
        (void)dup2(log, 2);
        (void)execvp(FAKE_CXX, (char *const *)argv);
        _exit(127);
    }
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int hostcc_compile(hostcc *unit, int option_count, const char *const *options)
{
    char dir[] = "/tmp/fakenvrtc.XXXXXX";
    char path[400];
    char command[500];
    size_t log_size = 0;
    if (mkdtemp(dir) == NULL || !write_source(unit, dir)) {
        return -1;
    }
    const bool good = run_compiler(dir, option_count, options);
    (void)snprintf(path, sizeof(path), "%s/log.txt", dir);
    char *log = read_whole(path, &log_size);
    unit->log = strdup(log != NULL ? log + HOSTCC_ROOM : "");
    free(log);
    if (good) {
        (void)snprintf(path, sizeof(path), "%s/k.so", dir);
        unit->object = read_whole(path, &unit->object_size);
    }
    (void)snprintf(command, sizeof(command), "rm -rf %s", dir);
    (void)!system(command);
    return good;
}

void hostcc_note(const char *variable, int option_count, const char *const *options)
{
    const char *path = getenv(variable);
    FILE *file = path != NULL ? fopen(path, "a") : NULL;
    if (file != NULL) {
        (void)fprintf(file, "compile");
        for (int i = 0; i < option_count; i++) {
            (void)fprintf(file, " %s", options[i]);
        }
        (void)fprintf(file, "\n");
        (void)fclose(file);
    }
}
