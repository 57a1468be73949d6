/* The script of faults: parsed when the backend is opened, looked at by every operation. */
#include "apis/fake/backend/faults.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "sys/clock.h"
#include "sys/thread.h"

#define SLOW_NS 100000000ull
#define HOUR_NS 3600000000000ull

static const char *const op_names[FAKE_OP_COUNT] = {
#define FAKE_OP_NAME(name, text) text,
    FAKE_OPS(FAKE_OP_NAME)
#undef FAKE_OP_NAME
};

typedef struct failure_row {
    const char *what;
    kiln_status status; /* KILN_OK: an act, not a failure */
} failure_row;

static const failure_row failures[] = {
    {"reject", KILN_E_REJECTED},
    {"compile", KILN_E_COMPILE},
    {"nomem", KILN_E_NOMEM},
    {"lost", KILN_E_DEVICE_LOST},
    {"unavailable", KILN_E_UNAVAILABLE},
    {"fail", KILN_E_INTERNAL},
    {"crash", KILN_OK},
    {"hang", KILN_OK},
    {"exit", KILN_OK},
    {"slow", KILN_OK},
    {"empty", KILN_OK},
};

#define FAILURES (sizeof(failures) / sizeof(failures[0]))

static bool same_name(const char *text, size_t length, const char *name)
{
    return strlen(name) == length && memcmp(text, name, length) == 0;
}

/* Reads "op=what@n" of `length` characters. */
static bool read_row(const char *text, size_t length, kn_fake_fault *out_row)
{
    const char *equals = (const char *)memchr(text, '=', length);
    if (equals == NULL) {
        return false;
    }
    const char *what = equals + 1;
    size_t what_length = length - (size_t)(what - text);
    const char *at = (const char *)memchr(what, '@', what_length);
    memset(out_row, 0, sizeof(*out_row));
    if (at != NULL) {
        char number[24];
        size_t digits = what_length - (size_t)(at + 1 - what);
        if (digits == 0 || digits >= sizeof(number)) {
            return false;
        }
        memcpy(number, at + 1, digits);
        number[digits] = '\0';
        if (!kn_text_to_u64(number, &out_row->at) || out_row->at == 0) {
            return false;
        }
        what_length = (size_t)(at - what);
    }
    out_row->op = FAKE_OP_COUNT;
    for (int i = 0; i < FAKE_OP_COUNT; i++) {
        if (same_name(text, (size_t)(equals - text), op_names[i])) {
            out_row->op = (kn_fake_op)i;
        }
    }
    for (size_t i = 0; i < FAILURES; i++) {
        if (same_name(what, what_length, failures[i].what)) {
            out_row->what = failures[i].what;
        }
    }
    return out_row->op != FAKE_OP_COUNT && out_row->what != NULL;
}

kiln_status kn_fake_faults_init(kn_fake_faults *faults, const char *script, kiln_diag *diag)
{
    memset(faults, 0, sizeof(*faults));
    while (script != NULL && *script != '\0') {
        size_t length = strcspn(script, ",");
        if (faults->count == FAKE_FAULTS_MAX ||
            !read_row(script, length, &faults->rows[faults->count])) {
            return kiln_diag_set(diag, KILN_E_INVALID, "write op=what@n, as faults.h says",
                                 "KILN_FAKE_FAULTS", "\"%.*s\" is not a fault", (int)length,
                                 script);
        }
        faults->count++;
        script += length + (script[length] == ',');
    }
    return KILN_OK;
}

static void note_thread(kn_fake_faults *faults)
{
    uintptr_t none = 0;
    uintptr_t self = kn_thread_self();
    if (!atomic_compare_exchange_strong(&faults->thread, &none, self) && none != self) {
        atomic_store(&faults->other_threads, true);
    }
}

static kiln_status act_on_fault(const char *what, kn_fake_op op, bool *out_empty, kiln_diag *diag)
{
    for (size_t i = 0; i < FAILURES; i++) {
        if (strcmp(failures[i].what, what) == 0 && failures[i].status != KILN_OK) {
            (void)kiln_diag_set(diag, failures[i].status, "clear KILN_FAKE_FAULTS", "fake",
                                "a scripted fault: %s=%s", op_names[op], what);
            kiln_diag_set_vendor_code(diag, -(int64_t)op - 1);
            return failures[i].status;
        }
    }
    if (strcmp(what, "crash") == 0) {
        abort();
    }
    if (strcmp(what, "exit") == 0) {
        _Exit(3);
    }
    while (strcmp(what, "hang") == 0) {
        kn_clock_sleep(HOUR_NS);
    }
    if (strcmp(what, "slow") == 0) {
        kn_clock_sleep(SLOW_NS);
    }
    if (out_empty != NULL) {
        *out_empty = strcmp(what, "empty") == 0;
    }
    return KILN_OK;
}

kiln_status kn_fake_call(kn_fake_faults *faults, kn_fake_op op, bool *out_empty, kiln_diag *diag)
{
    note_thread(faults);
    uint64_t call = atomic_fetch_add(&faults->calls[op], 1) + 1;
    for (size_t i = 0; i < faults->count; i++) {
        const kn_fake_fault *row = &faults->rows[i];
        if (row->op == op && (row->at == 0 || row->at == call)) {
            return act_on_fault(row->what, op, out_empty, diag);
        }
    }
    return KILN_OK;
}
