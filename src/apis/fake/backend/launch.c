/* Queues, launches and events: an interpreter that runs the work-items one after the other. */
#include <stdlib.h>
#include <string.h>

#include "apis/fake/backend/fake.h"
#include "base/diag.h"

kiln_status kn_fake_event_create(kn_fake_device *device, void **out_event, uint64_t ns,
                                 kiln_diag *diag)
{
    kn_fake_event *event = NULL;
    for (int32_t i = 0; event == NULL && i < FAKE_EVENTS; i++) {
        const uint32_t bit = (uint32_t)1 << i;
        if ((atomic_fetch_or(&device->events_taken, bit) & bit) == 0) {
            event = &device->events[i];
            event->place = i;
        }
    }
    if (event == NULL) {
        event = (kn_fake_event *)calloc(1, sizeof(*event));
        if (event == NULL) {
            return kn_no_memory(diag, "fake");
        }
        event->place = -1;
    }
    event->ns = ns;
    *out_event = event;
    return KILN_OK;
}

bool kn_fake_event_done(void *device, void *event)
{
    (void)device;
    (void)event;
    return true;
}

kiln_status kn_fake_event_wait(void *device, void *event, kiln_diag *diag)
{
    (void)device;
    (void)event;
    (void)diag;
    return KILN_OK;
}

kiln_status kn_fake_event_elapsed(void *device, void *event, uint64_t *out_ns, kiln_diag *diag)
{
    (void)device;
    (void)diag;
    *out_ns = ((const kn_fake_event *)event)->ns;
    return KILN_OK;
}

void kn_fake_event_destroy(void *device, void *event)
{
    const kn_fake_event *fake = (const kn_fake_event *)event;
    if (fake != NULL && fake->place >= 0) {
        (void)atomic_fetch_and(&((kn_fake_device *)device)->events_taken,
                               ~((uint32_t)1 << fake->place));
        return;
    }
    free(event);
}

kiln_status kn_fake_queue_create(void *device, void **out_queue, kiln_diag *diag)
{
    kn_fake_device *fake = (kn_fake_device *)device;
    kiln_status status = kn_fake_call(&fake->instance->faults, FAKE_QUEUE, NULL, diag);
    if (status != KILN_OK) {
        return status;
    }
    kn_fake_queue *queue = (kn_fake_queue *)calloc(1, sizeof(*queue));
    if (queue == NULL) {
        return kn_no_memory(diag, "fake");
    }
    queue->device = fake;
    *out_queue = queue;
    return KILN_OK;
}

void kn_fake_queue_destroy(void *device, void *queue)
{
    (void)device;
    free(queue);
}

kiln_status kn_fake_queue_wrap(void *device, uint64_t native, void **out_queue, kiln_diag *diag)
{
    kiln_status status = kn_fake_queue_create(device, out_queue, diag);
    if (status == KILN_OK) {
        ((kn_fake_queue *)*out_queue)->native = native;
    }
    return status;
}

uint64_t kn_fake_queue_native(void *device, void *queue)
{
    const kn_fake_queue *fake = (const kn_fake_queue *)queue;
    (void)device;
    return fake->native != 0 ? fake->native : (uint64_t)(uintptr_t)fake;
}

kiln_status kn_fake_queue_mark(void *queue, void **out_event, kiln_diag *diag)
{
    return kn_fake_event_create(((kn_fake_queue *)queue)->device, out_event, 0, diag);
}

kiln_status kn_fake_queue_finish(void *queue, kiln_diag *diag)
{
    kn_fake_queue *fake = (kn_fake_queue *)queue;
    return kn_fake_call(&fake->device->instance->faults, FAKE_FINISH, NULL, diag);
}

/* Every event is done when it is handed over. */
kiln_status kn_fake_queue_wait(void *queue, void *event, kiln_diag *diag)
{
    (void)queue;
    (void)event;
    (void)diag;
    return KILN_OK;
}

/* --- the interpreter -------------------------------------------------------------------------- */

/* One work-item. A step that leaves its bounds stops the item, as a real device would fault. */
typedef struct work_item {
    const kn_fake_kernel *kernel;
    const kiln_sys_launch *launch;
    double names[8]; /* i gx gy gz nx ny nz lx */
    double stack[FAKE_STACK_MAX];
    size_t height;
    bool fault;
} work_item;

static double pop_value(work_item *item)
{
    if (item->height == 0) {
        item->fault = true;
        return 0;
    }
    return item->stack[--item->height];
}

static void push_value(work_item *item, double value)
{
    if (item->height == FAKE_STACK_MAX) {
        item->fault = true;
        return;
    }
    item->stack[item->height++] = value;
}

/* The address of an element, or NULL outside the buffer. */
static unsigned char *element_at(work_item *item, uint32_t param, double index)
{
    const kiln_sys_arg *arg = &item->launch->args[param];
    kn_fake_buffer *buffer = (kn_fake_buffer *)arg->buffer;
    size_t elements = (buffer->size - arg->offset) / 4;
    if (!(index >= 0) || index >= (double)elements) {
        item->fault = true;
        return NULL;
    }
    return buffer->bytes + arg->offset + (size_t)index * 4;
}

static double load_number(const void *from, uint32_t type)
{
    float real = 0;
    int32_t whole = 0;
    if (type == FAKE_FLOAT || type == FAKE_FLOATS) {
        memcpy(&real, from, sizeof(real));
        return (double)real;
    }
    memcpy(&whole, from, sizeof(whole));
    return (double)whole;
}

static void store_number(work_item *item, uint32_t param, double index, double value)
{
    unsigned char *to = element_at(item, param, index);
    float real = (float)value;
    int32_t whole = value >= -2147483648.0 && value <= 2147483647.0 ? (int32_t)value : 0;
    if (to != NULL && item->kernel->params[param].type == FAKE_FLOATS) {
        memcpy(to, &real, sizeof(real));
    } else if (to != NULL) {
        memcpy(to, &whole, sizeof(whole));
    }
}

/* fmod() would be the one call of libkiln's that needs libm, which costs each driver that is loaded
 * later a per cent. A quotient that no whole number can be has no rest. */
static double divide_rest(double a, double b)
{
    const double quotient = a / b;
    const bool whole = quotient > -9e15 && quotient < 9e15;
    return whole ? a - b * (double)(int64_t)quotient : 0.0;
}

static double apply_operator(char operator, double a, double b)
{
    switch (operator) {
    case '+':
        return a + b;
    case '-':
        return a - b;
    case '*':
        return a * b;
    case '/':
        return a / b;
    default:
        return divide_rest(a, b);
    }
}

static void push_param(work_item *item, uint32_t param)
{
    uint32_t type = item->kernel->params[param].type;
    if (type == FAKE_FLOATS || type == FAKE_INTS) {
        const unsigned char *from = element_at(item, param, item->names[0]);
        push_value(item, from != NULL ? load_number(from, type) : 0);
    } else if (type == FAKE_LOCAL) {
        push_value(item, 0);
    } else {
        push_value(item, load_number(item->launch->args[param].value, type));
    }
}

static void run_step(work_item *item, const kn_fake_step *step)
{
    double value = 0;
    switch ((kn_fake_step_kind)step->kind) {
    case FAKE_PUSH_NUMBER:
        push_value(item, step->value);
        break;
    case FAKE_PUSH_PARAM:
        push_param(item, step->index);
        break;
    case FAKE_PUSH_NAME:
        push_value(item, item->names[step->index]);
        break;
    case FAKE_PUSH_ELEMENT: {
        const unsigned char *from = element_at(item, step->index, pop_value(item));
        push_value(item,
                   from != NULL ? load_number(from, item->kernel->params[step->index].type) : 0);
        break;
    }
    case FAKE_OPERATE:
        value = pop_value(item);
        push_value(item, apply_operator((char)step->index, pop_value(item), value));
        break;
    case FAKE_STORE:
        store_number(item, step->index, item->names[0], pop_value(item));
        break;
    case FAKE_STORE_AT:
        value = pop_value(item);
        store_number(item, step->index, pop_value(item), value);
        break;
    case FAKE_STEP_COUNT:
        item->fault = true;
        break;
    }
}

/* Runs all work-items; false if one left its bounds. */
static bool run_items(const kn_fake_program *program, const kn_fake_kernel *kernel,
                      const kiln_sys_launch *launch)
{
    bool fault = false;
    uint64_t linear = 0;
    for (uint64_t z = 0; z < launch->global[2]; z++) {
        for (uint64_t y = 0; y < launch->global[1]; y++) {
            for (uint64_t x = 0; x < launch->global[0]; x++) {
                work_item item = {.kernel = kernel, .launch = launch};
                uint64_t local = launch->local[0] != 0 ? launch->local[0] : 1;
                item.names[0] = (double)(linear++ + launch->offset[0]);
                item.names[1] = (double)(x + launch->offset[0]);
                item.names[2] = (double)(y + launch->offset[1]);
                item.names[3] = (double)(z + launch->offset[2]);
                item.names[4] = (double)launch->global[0];
                item.names[5] = (double)launch->global[1];
                item.names[6] = (double)launch->global[2];
                item.names[7] = (double)(x % local);
                for (uint32_t i = 0; i < kernel->count && !item.fault; i++) {
                    run_step(&item, &program->code.steps[kernel->first + i]);
                }
                fault = fault || item.fault;
            }
        }
    }
    return !fault;
}

/* The kernel by name. Core has compared the arguments with the parameters. */
static const kn_fake_kernel *find_kernel(const kn_fake_program *program,
                                         const kiln_sys_launch *launch)
{
    for (uint32_t i = 0; i < program->code.kernel_count; i++) {
        const kn_fake_kernel *kernel = &program->code.kernels[i];
        if (strcmp(kernel->name, launch->entry) == 0 && kernel->param_count == launch->arg_count) {
            return kernel;
        }
    }
    return NULL;
}

/* How long a launch takes by the device's clock: a time for each step of each item, and one for
 * each group. The same every time. */
static uint64_t time_of(const kn_fake_kernel *kernel, const kiln_sys_launch *launch)
{
    static const uint64_t step_ns = 10;
    static const uint64_t group_ns = 50;
    uint64_t items = 1;
    uint64_t groups = 1;
    for (size_t i = 0; i < 3; i++) {
        const uint64_t local = launch->local[i] != 0 ? launch->local[i] : 1;
        items *= launch->global[i];
        groups *= (launch->global[i] + local - 1) / local;
    }
    return 1 + items * kernel->count * step_ns + groups * group_ns;
}

kiln_status kn_fake_queue_launch(void *queue, const kiln_sys_launch *launch, void **out_event,
                                 kiln_diag *diag)
{
    kn_fake_queue *fake = (kn_fake_queue *)queue;
    kn_fake_program *program = (kn_fake_program *)launch->program;
    kiln_status status = kn_fake_call(&fake->device->instance->faults, FAKE_LAUNCH, NULL, diag);
    if (status != KILN_OK) {
        return status;
    }
    const kn_fake_kernel *kernel = find_kernel(program, launch);
    if (kernel == NULL) {
        return kiln_diag_set(diag, KILN_E_INVALID, NULL, "fake", "no such kernel: %s",
                             launch->entry);
    }
    uint64_t shape = launch->local[0] < FAKE_SHAPES_MAX ? launch->local[0] : FAKE_SHAPES_MAX - 1;
    if (!run_items(program, kernel, launch)) {
        return kiln_diag_set(diag, KILN_E_DEVICE_LOST, "look at its indices", launch->entry,
                             "a work-item left the bounds of a buffer");
    }
    (void)atomic_fetch_or(&program->shapes, (uint64_t)1 << shape);
    return out_event != NULL
               ? kn_fake_event_create(fake->device, out_event, time_of(kernel, launch), diag)
               : KILN_OK;
}
