/* Trace events: formatted where they happen, gathered in one buffer, written in whole pieces that
 * each put the closing bracket of the array after themselves. */
#include "core/runtime/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/log.h"
#include "core/runtime/runtime.h"
#include "sys/file.h"
#include "sys/lock.h"
#include "sys/thread.h"

#define BUFFER_SIZE ((size_t)64 << 10)
#define EVENT_SIZE ((size_t)1536)
#define CLAIM_OFFSET ((uint64_t)1 << 61) /* far beyond what is written */
#define FLUSH_NS 250000000u
#define THREADS_MAX 256u
#define DEVICES_MAX 64u
#define HOST_TRACK 1u   /* the process's "pid" in the file */
#define DEVICE_TRACK 2u /* of the first device; the others follow */

struct kn_trace {
    kn_mutex mutex;
    kn_lock_file *claim; /* says to others that the file is taken; may be NULL */
    FILE *file;
    long end; /* where the closing bracket is */
    bool empty, failed;
    uint64_t start_ns, flushed_ns;
    uintptr_t threads[THREADS_MAX];
    size_t thread_count;
    const kiln_device *devices[DEVICES_MAX];
    size_t device_count;
    size_t used;
    char buffer[BUFFER_SIZE];
};

static const char closing[] = "\n]\n";

/* --- text ------------------------------------------------------------------------------------- */

/* `text` between quotes as JSON has it, cut to the room: at least 8 bytes. Bytes that are not UTF-8
 * are the caller's affair: what is named here came from paths and sources that have been read. */
static void quote_json(char *to, size_t size, const char *text)
{
    size_t used = 0;
    for (; *text != '\0' && used + 8 < size; text++) {
        const unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            to[used++] = '\\';
            to[used++] = (char)c;
        } else if (c < 0x20 || c >= 0x7F) {
            /* Latin-1 at worst, but always JSON, however a name was cut. */
            used += (size_t)snprintf(to + used, size - used, "\\u%04x", c);
        } else {
            to[used++] = (char)c;
        }
    }
    to[used] = '\0';
}

static void device_label(char *to, size_t size, const kiln_device *device)
{
    (void)snprintf(to, size, "%s:%u", device->info.backend, (unsigned)device->info.index);
}

/* Appends `"name":"text"` behind `used` bytes of members; nothing for an empty text. */
static size_t add_member(char *to, size_t size, size_t used, const char *name, const char *text)
{
    char quoted[400];
    if (text == NULL || text[0] == '\0') {
        return used;
    }
    quote_json(quoted, sizeof(quoted), text);
    return used + (size_t)snprintf(to + used, size - used, "%s\"%s\":\"%s\"", used > 0 ? "," : "",
                                   name, quoted);
}

static void format_about(char *to, size_t size, const kn_trace_about *about)
{
    char label[64] = "";
    to[0] = '\0';
    if (about->device != NULL) {
        device_label(label, sizeof(label), about->device);
    }
    size_t used = add_member(to, size, 0, "what", about->what);
    used = add_member(to, size, used, "detail", about->detail);
    used = add_member(to, size, used, "device", label);
    if (about->bytes != 0) {
        (void)snprintf(to + used, size - used, "%s\"bytes\":%llu", used > 0 ? "," : "",
                       (unsigned long long)about->bytes);
    }
}

/* --- the file: under the mutex ---------------------------------------------------------------- */

/* One write takes the place of the closing bracket with more events and the bracket again. */
static void flush_trace(kn_trace *trace, uint64_t now)
{
    trace->flushed_ns = now;
    if (trace->used == 0 || trace->failed) {
        return;
    }
    const size_t size = trace->used;
    memcpy(trace->buffer + size, closing, sizeof(closing) - 1);
    trace->used = 0;
    if (fseek(trace->file, trace->end, SEEK_SET) != 0 ||
        fwrite(trace->buffer, 1, size + sizeof(closing) - 1, trace->file) !=
            size + sizeof(closing) - 1) {
        trace->failed = true;
        kn_log(KILN_LOG_WARN, "the trace ends here: %s", strerror(errno));
        return;
    }
    trace->end += (long)size;
}

static void append_event(kn_trace *trace, const char *event, size_t size, uint64_t now)
{
    /* Room for a comma, a line break and the closing bracket. */
    if (trace->used + size + 2 + sizeof(closing) > BUFFER_SIZE) {
        flush_trace(trace, now);
    }
    if (!trace->empty) {
        trace->buffer[trace->used++] = ',';
    }
    trace->buffer[trace->used++] = '\n';
    trace->empty = false;
    memcpy(trace->buffer + trace->used, event, size);
    trace->used += size;
}

static void name_track(kn_trace *trace, const char *kind, size_t pid, size_t tid, const char *name,
                       uint64_t now)
{
    char event[EVENT_SIZE];
    char text[600];
    quote_json(text, sizeof(text), name);
    const int size = snprintf(event, sizeof(event),
                              "{\"name\":\"%s\",\"ph\":\"M\",\"pid\":%zu,\"tid\":%zu,"
                              "\"args\":{\"name\":\"%s\"}}",
                              kind, pid, tid, text);
    append_event(trace, event, (size_t)size, now);
}

/* The number of the calling thread; 0 when there are too many to distinguish. */
static size_t thread_number(kn_trace *trace)
{
    const uintptr_t self = kn_thread_self();
    for (size_t i = trace->thread_count; i > 0; i--) {
        if (trace->threads[i - 1] == self) {
            return i;
        }
    }
    if (trace->thread_count == THREADS_MAX) {
        return 0;
    }
    trace->threads[trace->thread_count++] = self;
    return trace->thread_count;
}

static size_t device_track(kn_trace *trace, const kiln_device *device, uint64_t now)
{
    char name[sizeof(device->info.name) + 64];
    char label[64];
    for (size_t i = 0; i < trace->device_count; i++) {
        if (trace->devices[i] == device) {
            return DEVICE_TRACK + i;
        }
    }
    if (trace->device_count == DEVICES_MAX) {
        return DEVICE_TRACK + DEVICES_MAX;
    }
    trace->devices[trace->device_count] = device;
    const size_t track = DEVICE_TRACK + trace->device_count++;
    device_label(label, sizeof(label), device);
    (void)snprintf(name, sizeof(name), "%s %s", label, device->info.name);
    name_track(trace, "process_name", track, 0, name, now);
    return track;
}

static void put_span(kn_trace *trace, uint64_t start, uint64_t end, const char *name, bool device,
                     const kn_trace_about *about)
{
    char event[EVENT_SIZE];
    char args[1024];
    format_about(args, sizeof(args), about);
    const uint64_t from = start > trace->start_ns ? start - trace->start_ns : 0;
    const uint64_t took = end > start ? end - start : 0;
    kn_mutex_lock(&trace->mutex);
    if (!trace->failed) {
        const size_t pid = device ? device_track(trace, about->device, end) : HOST_TRACK;
        const size_t tid = device ? 1 : thread_number(trace);
        const int size = snprintf(
            event, sizeof(event),
            "{\"name\":\"%s\",\"cat\":\"kiln\",\"ph\":\"X\",\"ts\":%llu.%03u,\"dur\":%llu.%03u,"
            "\"pid\":%zu,\"tid\":%zu,\"args\":{%s}}",
            name, (unsigned long long)(from / 1000), (unsigned)(from % 1000),
            (unsigned long long)(took / 1000), (unsigned)(took % 1000), pid, tid, args);
        append_event(trace, event, (size_t)size, end);
        if (end - trace->flushed_ns > FLUSH_NS) {
            flush_trace(trace, end);
        }
    }
    kn_mutex_unlock(&trace->mutex);
}

/* --- outside ---------------------------------------------------------------------------------- */

void kn_trace_put(kn_trace *trace, uint64_t start_ns, uint64_t end_ns, const char *name,
                  const kn_trace_about *about)
{
    put_span(trace, start_ns, end_ns, name, false, about);
}

void kn_trace_put_device(kn_trace *trace, uint64_t start_ns, uint64_t end_ns, const char *name,
                         const kn_trace_about *about)
{
    put_span(trace, start_ns, end_ns, name, true, about);
}

void kn_trace_thread(kn_trace *trace, const char *name)
{
    if (trace != NULL) {
        kn_mutex_lock(&trace->mutex);
        if (!trace->failed) { /* nothing empties the buffer any more */
            name_track(trace, "thread_name", HOST_TRACK, thread_number(trace), name,
                       kn_clock_now());
        }
        kn_mutex_unlock(&trace->mutex);
    }
}

/* One runtime writes a file, of whatever process. False if another one does. Where there are no
 * locks, that is the user's to see to. */
static bool claim_path(const char *path, kn_lock_file **out_claim)
{
    kn_lock_file *file = NULL;
    if (kn_lock_file_open(path, &file, NULL) != KILN_OK) {
        return true; /* the next open of the file says why */
    }
    if (kn_lock_try(file, CLAIM_OFFSET) == KILN_E_BUSY) {
        kn_lock_file_close(file);
        return false;
    }
    kn_lock_file_keep(file);
    *out_claim = file;
    return true;
}

kiln_status kn_trace_open(const char *path, kn_trace **out_trace, kiln_diag *diag)
{
    kn_lock_file *claimed = NULL;
    *out_trace = NULL;
    if (!claim_path(path, &claimed)) {
        kn_log(KILN_LOG_INFO,
               "%s: another runtime writes its trace to this file; this runtime is not traced",
               path);
        return KILN_OK;
    }
    kn_trace *trace = (kn_trace *)calloc(1, sizeof(*trace));
    if (trace == NULL) {
        kn_lock_file_close(claimed);
        return kn_no_memory(diag, "opening a trace");
    }
    trace->file = kn_file_create_stream(path);
    if (trace->file == NULL || setvbuf(trace->file, NULL, _IONBF, 0) != 0 ||
        fwrite("[", 1, 1, trace->file) != 1) {
        const int error = errno;
        if (trace->file != NULL) {
            (void)fclose(trace->file);
        }
        kn_lock_file_close(claimed);
        free(trace);
        (void)kiln_diag_set(diag, KILN_E_IO, "name a file that can be written (KILN_TRACE)", path,
                            "the trace cannot be written: %s", strerror(error));
        kiln_diag_set_vendor_code(diag, error);
        return KILN_E_IO;
    }
    kn_mutex_init(&trace->mutex);
    trace->claim = claimed;
    trace->end = 1;
    trace->empty = true;
    trace->start_ns = kn_clock_now();
    name_track(trace, "process_name", HOST_TRACK, 0, "kiln", trace->start_ns);
    flush_trace(trace, trace->start_ns);
    *out_trace = trace;
    return KILN_OK;
}

void kn_trace_close(kn_trace *trace)
{
    if (trace != NULL) {
        flush_trace(trace, kn_clock_now());
        if (fclose(trace->file) != 0 && !trace->failed) {
            kn_log(KILN_LOG_WARN, "the trace is incomplete: %s", strerror(errno));
        }
        kn_lock_file_close(trace->claim);
        kn_mutex_deinit(&trace->mutex);
        free(trace);
    }
}
