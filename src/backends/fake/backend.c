/* The tables of the fake backend. Each operation is in the file that its subject names. */
#include "backends/fake/fake.h"

static const kiln_compiler_ops compiler_ops = {
    .abi = KILN_BACKEND_ABI,
    .size = sizeof(kiln_compiler_ops),
    .stages = fake_stages,
    .target_of_device = fake_target_of_device,
    .target_parse = fake_target_parse,
    .target_destroy = fake_target_destroy,
    .identify = fake_identify,
    .system_include_dir = fake_system_include_dir,
    .ships_header = fake_ships_header,
    .uncacheable_option = fake_uncacheable_option,
    .compile = fake_compile,
};

static const kiln_device_ops device_ops = {
    .abi = KILN_BACKEND_ABI,
    .size = sizeof(kiln_device_ops),
    .device_info = fake_device_info,
    .device_open = fake_device_open,
    .device_close = fake_device_close,
    .buffer_create = fake_buffer_create,
    .buffer_destroy = fake_buffer_destroy,
    .program_load = fake_program_load,
    .program_unload = fake_program_unload,
    .program_grew = fake_program_grew,
    .program_capture = fake_program_capture,
    .program_entry = fake_program_entry,
    .program_params = fake_program_params,
    .queue_create = fake_queue_create,
    .queue_destroy = fake_queue_destroy,
    .queue_write = fake_queue_write,
    .queue_read = fake_queue_read,
    .queue_fill = fake_queue_fill,
    .queue_copy = fake_queue_copy,
    .queue_launch = fake_queue_launch,
    .queue_finish = fake_queue_finish,
    .event_done = fake_event_done,
    .event_wait = fake_event_wait,
    .event_elapsed = fake_event_elapsed,
    .event_destroy = fake_event_destroy,
};

const kiln_backend kn_backend_fake = {
    .abi = KILN_BACKEND_ABI,
    .size = sizeof(kiln_backend),
    .name = "fake",
    .summary = "no hardware: the reference backend, with scripted faults",
    .caps = KILN_CAP_ANY_THREAD | KILN_CAP_COMPILE_OFFLINE | KILN_CAP_CAPTURE | KILN_CAP_FILL |
            KILN_CAP_COPY | KILN_CAP_REFLECT | KILN_CAP_LIVE_COMPILE | KILN_CAP_BUFFER_OFFSET |
            KILN_CAP_ON_REQUEST | KILN_CAP_SEARCH_KNOWN,
    .compiler = &compiler_ops,
    .device = &device_ops,
    .open = fake_open,
    .close = fake_close,
};
