/* Blocks with first-fit free lists, one list of blocks for all memory types. */
#include "apis/vulkan/backend/pool.h"

#include <stdlib.h>
#include <string.h>

#include "apis/vulkan/backend/instance.h"
#include "base/diag.h"

/* Shared blocks of a memory type grow from the first size to the last: 64 MiB of memory that the
 * host sees took NVIDIA's driver 20 ms to make, and a small program never needs them. */
#define FIRST_BLOCK ((VkDeviceSize)256 << 10)
#define BLOCK_SIZE ((VkDeviceSize)64 << 20)
#define MOST_BYTES ((VkDeviceSize)1 << 48) /* of one buffer: what rounds up cannot overflow */

/* A part of a block, in use or free; two free ones are never adjacent. */
typedef struct piece {
    struct piece *next;
    VkDeviceSize offset, size;
    bool taken;
} piece;

typedef struct kn_vk_block {
    struct kn_vk_block *next;
    VkDeviceMemory handle;
    VkDeviceSize size;
    uint32_t type;
    bool shared; /* stays for the next buffers when it is empty */
    char *mapped;
    piece *pieces; /* all of it, by offset */
} kn_vk_block;

struct kn_vk_pool {
    VkDevice device;
    const struct kn_vk_device_fn *fn;
    VkPhysicalDeviceMemoryProperties properties;
    VkDeviceSize atom; /* nonCoherentAtomSize: ranges are kept multiples of it */
    kn_mutex lock;
    kn_vk_block *blocks;
};

static bool is_alignment(VkDeviceSize number)
{
    return number > 0 && number <= BLOCK_SIZE && (number & (number - 1)) == 0;
}

static kiln_status refuse_number(const char *name, VkDeviceSize number, kiln_diag *diag)
{
    return kiln_diag_set(diag, KILN_E_INTERNAL, "update the Vulkan driver", "device memory",
                         "the driver names a %s of %llu", name, (unsigned long long)number);
}

kiln_status kn_vk_pool_create(VkDevice device, const struct kn_vk_device_fn *fn,
                              const VkPhysicalDeviceMemoryProperties *properties, VkDeviceSize atom,
                              kn_vk_pool **out_pool, kiln_diag *diag)
{
    *out_pool = NULL;
    if (atom != 0 && !is_alignment(atom)) {
        return refuse_number("nonCoherentAtomSize", atom, diag);
    }
    kn_vk_pool *pool = (kn_vk_pool *)calloc(1, sizeof(*pool));
    if (pool == NULL) {
        return kn_no_memory(diag, "memory pool");
    }
    pool->device = device;
    pool->fn = fn;
    pool->properties = *properties;
    pool->atom = atom > 0 ? atom : 1;
    kn_mutex_init(&pool->lock);
    *out_pool = pool;
    return KILN_OK;
}

static void destroy_block(kn_vk_pool *pool, kn_vk_block *block)
{
    if (block->mapped != NULL) {
        pool->fn->vkUnmapMemory(pool->device, block->handle);
    }
    pool->fn->vkFreeMemory(pool->device, block->handle, NULL);
    while (block->pieces != NULL) {
        piece *first = block->pieces;
        block->pieces = first->next;
        free(first);
    }
    free(block);
}

void kn_vk_pool_destroy(kn_vk_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    while (pool->blocks != NULL) {
        kn_vk_block *block = pool->blocks;
        pool->blocks = block->next;
        destroy_block(pool, block);
    }
    kn_mutex_deinit(&pool->lock);
    free(pool);
}

/* The first memory type allowed by the bits with all of `flags`; UINT32_MAX if there is none. */
static uint32_t find_type(const kn_vk_pool *pool, uint32_t bits, VkMemoryPropertyFlags flags)
{
    for (uint32_t i = 0; i < pool->properties.memoryTypeCount && i < VK_MAX_MEMORY_TYPES; i++) {
        if ((bits >> i & 1) != 0 &&
            (pool->properties.memoryTypes[i].propertyFlags & flags) == flags) {
            return i;
        }
    }
    return UINT32_MAX;
}

static kiln_status create_block(kn_vk_pool *pool, uint32_t type, VkDeviceSize size,
                                kn_vk_block **out_block, kiln_diag *diag)
{
    kn_vk_block *block = (kn_vk_block *)calloc(1, sizeof(*block));
    piece *whole = (piece *)calloc(1, sizeof(*whole));
    if (block == NULL || whole == NULL) {
        free(whole);
        free(block);
        return kn_no_memory(diag, "device memory");
    }
    const VkMemoryAllocateInfo info = {VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, NULL, size, type};
    VkResult result = pool->fn->vkAllocateMemory(pool->device, &info, NULL, &block->handle);
    if (result != VK_SUCCESS) {
        free(whole);
        free(block);
        return kn_vk_fail(result, "vkAllocateMemory", diag);
    }
    block->size = size;
    block->type = type;
    block->pieces = whole;
    whole->size = size;
    const bool visible = (pool->properties.memoryTypes[type].propertyFlags &
                          VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT) != 0;
    void *mapped = NULL;
    if (visible && pool->fn->vkMapMemory(pool->device, block->handle, 0, VK_WHOLE_SIZE, 0,
                                         &mapped) == VK_SUCCESS) {
        block->mapped = (char *)mapped;
    }
    block->next = pool->blocks;
    pool->blocks = block;
    *out_block = block;
    return KILN_OK;
}

static void join_next(piece *p)
{
    piece *next = p->next;
    if (!p->taken && next != NULL && !next->taken) {
        p->size += next->size;
        p->next = next->next;
        free(next);
    }
}

/* Makes the first `size` bytes of a free piece one of its own. */
static bool split_piece(piece *p, VkDeviceSize size)
{
    if (p->size > size) {
        piece *rest = (piece *)malloc(sizeof(*rest));
        if (rest == NULL) {
            return false;
        }
        *rest = (piece){p->next, p->offset + size, p->size - size, false};
        p->next = rest;
        p->size = size;
    }
    return true;
}

/* Cuts `size` bytes at `alignment` out of a free piece; giving them back cannot fail. */
static bool cut_piece(kn_vk_block *block, VkDeviceSize size, VkDeviceSize alignment,
                      VkDeviceSize *out_offset)
{
    for (piece *p = block->pieces; p != NULL; p = p->next) {
        const VkDeviceSize start = (p->offset + alignment - 1) / alignment * alignment;
        const VkDeviceSize gap = start - p->offset;
        if (p->taken || gap >= p->size || p->size - gap < size) {
            continue;
        }
        if (gap > 0 && !split_piece(p, gap)) {
            return false;
        }
        piece *fit = gap > 0 ? p->next : p;
        if (!split_piece(fit, size)) {
            join_next(p);
            return false;
        }
        fit->taken = true;
        *out_offset = start;
        return true;
    }
    return false;
}

static void give_back(kn_vk_block *block, VkDeviceSize offset)
{
    piece *before = NULL, *p = block->pieces;
    while (p->offset != offset) {
        before = p;
        p = p->next;
    }
    p->taken = false;
    join_next(p);
    if (before != NULL) {
        join_next(before);
    }
}

static VkDeviceSize next_block_size(const kn_vk_pool *pool, uint32_t type, VkDeviceSize size)
{
    VkDeviceSize wanted = FIRST_BLOCK;
    for (const kn_vk_block *block = pool->blocks; block != NULL; block = block->next) {
        if (block->type == type && block->shared && wanted < 2 * block->size) {
            wanted = 2 * block->size;
        }
    }
    while (wanted < 2 * size) {
        wanted *= 2;
    }
    return wanted < BLOCK_SIZE ? wanted : BLOCK_SIZE;
}

static kiln_status get_locked(kn_vk_pool *pool, uint32_t type, VkDeviceSize size,
                              VkDeviceSize alignment, kn_vk_memory *memory, kiln_diag *diag)
{
    VkDeviceSize offset = 0;
    kn_vk_block *block = NULL;
    if (size <= BLOCK_SIZE / 2) {
        for (block = pool->blocks; block != NULL; block = block->next) {
            if (block->type == type && cut_piece(block, size, alignment, &offset)) {
                break;
            }
        }
    }
    if (block == NULL) {
        const bool shared = size <= BLOCK_SIZE / 2;
        const VkDeviceSize block_size = shared ? next_block_size(pool, type, size) : size;
        kiln_status status = create_block(pool, type, block_size, &block, diag);
        if (status == KILN_E_NOMEM && block_size > size) {
            status = create_block(pool, type, size, &block, diag);
        }
        if (status != KILN_OK || block == NULL) {
            return status;
        }
        block->shared = shared && block->size == block_size;
        if (!cut_piece(block, size, 1, &offset)) {
            return kn_no_memory(diag, "device memory");
        }
    }
    memory->block = block;
    memory->handle = block->handle;
    memory->offset = offset;
    memory->size = size;
    memory->mapped = block->mapped != NULL ? block->mapped + offset : NULL;
    memory->coherent = (pool->properties.memoryTypes[type].propertyFlags &
                        VK_MEMORY_PROPERTY_HOST_COHERENT_BIT) != 0;
    return KILN_OK;
}

kiln_status kn_vk_pool_get(kn_vk_pool *pool, const VkMemoryRequirements *requirements,
                           VkMemoryPropertyFlags needed, VkMemoryPropertyFlags preferred,
                           kn_vk_memory *out_memory, kiln_diag *diag)
{
    memset(out_memory, 0, sizeof(*out_memory));
    if (!is_alignment(requirements->alignment)) {
        return refuse_number("buffer alignment", requirements->alignment, diag);
    }
    if (requirements->size > MOST_BYTES) {
        return refuse_number("buffer size", requirements->size, diag);
    }
    uint32_t type = find_type(pool, requirements->memoryTypeBits, needed | preferred);
    if (type == UINT32_MAX) {
        type = find_type(pool, requirements->memoryTypeBits, needed);
    }
    if (type == UINT32_MAX) {
        return kiln_diag_set(diag, KILN_E_UNSUPPORTED, NULL, "device memory",
                             "the device has no memory of the kind that is needed");
    }
    const VkDeviceSize alignment =
        requirements->alignment > pool->atom ? requirements->alignment : pool->atom;
    const VkDeviceSize size = (requirements->size + pool->atom - 1) / pool->atom * pool->atom;
    kn_mutex_lock(&pool->lock);
    kiln_status status = get_locked(pool, type, size, alignment, out_memory, diag);
    kn_mutex_unlock(&pool->lock);
    return status;
}

void kn_vk_pool_put(kn_vk_pool *pool, kn_vk_memory *memory)
{
    if (memory->block == NULL) {
        return;
    }
    kn_mutex_lock(&pool->lock);
    kn_vk_block *block = memory->block;
    give_back(block, memory->offset);
    /* A block of its own goes back at once; shared blocks stay for the next buffers. */
    if (!block->shared && !block->pieces->taken && block->pieces->next == NULL) {
        kn_vk_block **link = &pool->blocks;
        while (*link != block) {
            link = &(*link)->next;
        }
        *link = block->next;
        destroy_block(pool, block);
    }
    kn_mutex_unlock(&pool->lock);
    memset(memory, 0, sizeof(*memory));
}
