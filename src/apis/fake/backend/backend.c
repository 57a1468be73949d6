/* The tables of the fake backend. Each operation is in the file that its subject names. */
#include "apis/fake/backend/fake.h"

static const kiln_include_rules include_rules = {
    .complete = true,
    .option_effects = kn_fake_option_effects,
};

static const kiln_compiler_ops compiler_ops = {
    .abi = KILN_BACKEND_ABI,
    .size = sizeof(kiln_compiler_ops),
    .stages = kn_fake_stages,
    .target_of_device = kn_fake_target_of_device,
    .target_parse = kn_fake_target_parse,
    .target_destroy = kn_fake_target_destroy,
    .identify = kn_fake_identify,
    .system_include_dir = kn_fake_system_include_dir,
    .ships_header = kn_fake_ships_header,
    .uncacheable_option = kn_fake_uncacheable_option,
    .compile = kn_fake_compile,
    .include_rules = &include_rules,
};

static const kiln_device_ops device_ops = {
    .abi = KILN_BACKEND_ABI,
    .size = sizeof(kiln_device_ops),
    .device_info = kn_fake_device_info,
    .device_open = kn_fake_device_open,
    .device_close = kn_fake_device_close,
    .buffer_create = kn_fake_buffer_create,
    .buffer_destroy = kn_fake_buffer_destroy,
    .program_load = kn_fake_program_load,
    .program_unload = kn_fake_program_unload,
    .program_grew = kn_fake_program_grew,
    .program_capture = kn_fake_program_capture,
    .program_entry = kn_fake_program_entry,
    .program_params = kn_fake_program_params,
    .queue_create = kn_fake_queue_create,
    .queue_destroy = kn_fake_queue_destroy,
    .queue_write = kn_fake_queue_write,
    .queue_read = kn_fake_queue_read,
    .queue_fill = kn_fake_queue_fill,
    .queue_copy = kn_fake_queue_copy,
    .queue_launch = kn_fake_queue_launch,
    .queue_finish = kn_fake_queue_finish,
    .queue_wait = kn_fake_queue_wait,
    .event_done = kn_fake_event_done,
    .event_wait = kn_fake_event_wait,
    .event_elapsed = kn_fake_event_elapsed,
    .event_destroy = kn_fake_event_destroy,
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
