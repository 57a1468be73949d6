/* A driver's pipelines and pipeline caches, with data that can be read and checked: what lavapipe
 * keeps in a VkPipelineCache is a header alone. It stands by itself, or in front of a real driver,
 * which then makes the objects. */
#ifndef KILN_TESTS_FAKEICD_PIPELINES_H
#define KILN_TESTS_FAKEICD_PIPELINES_H

#include <stdbool.h>
#include <stdint.h>

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

/* One pipeline in the data of a cache. */
enum { FAKE_RECORD = 256 };

typedef struct fake_driver {
    /* The real driver's function of a device, or NULL without one. */
    PFN_vkVoidFunction (*real)(const char *name);
    const char *log;            /* a file that gets a line for each pipeline, or NULL */
    uint8_t uuid[VK_UUID_SIZE]; /* pipelineCacheUUID */
    uint32_t vendor, device;    /* of the header */
    bool makes_none;            /* data is a header alone */
    int merge_ms;               /* how long a merge takes */
    _Atomic int fail_next;      /* so many pipelines fail */
    _Atomic int compiled, hits, with_data, refused_data; /* what was seen */
} fake_driver;

extern fake_driver fake;

/* A function of the device that this driver has, or NULL. */
PFN_vkVoidFunction fake_find(const char *name);

#endif
