/* The tables of the fake backend. Each operation is in the file that its subject names. */
#include "apis/fake/backend/fake.h"

static const kiln_include_rules include_rules = {
    .complete = true,
    .option_effects = kn_fake_option_effects,
};

static const kiln_compiler_ops compiler_ops = {
    KN_COMPILER_OPS(kn_fake_),
    KN_SEARCH_OPS(kn_fake_),
    .target_parse = kn_fake_target_parse,
    .include_rules = &include_rules,
};

static const kiln_device_ops device_ops = {
    KN_DEVICE_OPS(kn_fake_),
    .program_grew = kn_fake_program_grew,
    .program_capture = kn_fake_program_capture,
    .queue_wait = kn_fake_queue_wait,
    .buffer_wrap = kn_fake_buffer_wrap,
    .buffer_address = kn_fake_buffer_address,
    .queue_wrap = kn_fake_queue_wrap,
    .queue_native = kn_fake_queue_native,
    .queue_mark = kn_fake_queue_mark,
};

static const char *const basis_variables[] = {"KILN_FAKE*", NULL};
static const char *const basis_places[] = {NULL};
static const kiln_probe_basis basis = {basis_variables, basis_places, false};

const kiln_backend kn_backend_fake = {
    .abi = KILN_BACKEND_ABI,
    .size = sizeof(kiln_backend),
    .name = "fake",
    .summary = "no hardware: the reference backend, with scripted faults",
    .caps = KILN_CAP_ANY_THREAD | KILN_CAP_COMPILE_OFFLINE | KILN_CAP_CAPTURE | KILN_CAP_FILL |
            KILN_CAP_COPY | KILN_CAP_REFLECT | KILN_CAP_LIVE_COMPILE | KILN_CAP_BUFFER_OFFSET |
            KILN_CAP_ON_REQUEST | KILN_CAP_QUEUE_WAIT | KILN_CAP_ASYNC_COPY |
            KILN_CAP_NATIVE_MEMORY | KILN_CAP_NATIVE_QUEUE,
    .compiler = &compiler_ops,
    .device = &device_ops,
    .open = kn_fake_open,
    .close = kn_fake_close,
    .basis = &basis,
};
