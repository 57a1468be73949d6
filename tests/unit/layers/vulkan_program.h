/* A program above the Vulkan layer's core, and a driver below it whose pipeline caches can be
 * looked into. Everything is asked for as the loader and a program would. */
#ifndef KILN_TESTS_VULKAN_PROGRAM_H
#define KILN_TESTS_VULKAN_PROGRAM_H

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "apis/vulkan/layer/api.h"
#include "kiln/cache.h"
#include "support/cmocka.h"
#include "support/counters.h"
#include "support/fakeicd/pipelines.h"
#include "support/tmpdir.h"

const kn_vk_layer *kn_interpose_vulkan(void); /* found by its name */

/* What the core takes for the process's cache. */
extern kiln_cache *cache;
kiln_cache *open_cache(const char *dir, uint32_t flags);
/* Another process begins: nothing but what is on disk is left. */
void next_process(const char *dir);

/* As a loader makes handles: they begin with a pointer to its table. */
typedef struct world {
    const void *table;
    char table_bytes;
} world;

VkDevice begin_named(world *program, const char *application, bool passes);
VkDevice begin(world *program);
void end(VkDevice device);

#define CALL(name) ((PFN_##name)kn_interpose_vulkan()->find(#name))

/* One pipeline, as a program may ask for it. */
typedef struct wish {
    uint32_t module, bindings, push, constant;
    VkPipelineCreateFlags flags;
    const void *next, *stage_next;
    VkPipelineCache own;
    const VkAllocationCallbacks *allocator;
} wish;

extern const wish plain;

VkResult make_compute(VkDevice device, const wish *wanted);
void make_graphics(VkDevice device, VkPipelineCache own, uint32_t number);
void make_rays(VkDevice device, uint32_t number);

/* What the driver has done since the last look. */
int compiled_since(void);
int hits_since(void);

int set_up(void **state);
int tear_down(void **state);

#endif
