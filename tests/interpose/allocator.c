/* A program's own malloc(3), preloaded as jemalloc and tcmalloc are: memory that is not from here
 * must not be freed here, nor the other way round. Nothing is given back. */
#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define ARENA_SIZE ((size_t)16 << 30)
#define HEAD 32 /* the size, in front of what is given out */

static _Atomic(char *) arena;
static _Atomic size_t used;

static char *find_arena(void)
{
    char *known = atomic_load(&arena);
    if (known == NULL) {
        char *made = (char *)mmap(NULL, ARENA_SIZE, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (made == MAP_FAILED || atomic_compare_exchange_strong(&arena, &known, made)) {
            return made == MAP_FAILED ? NULL : made;
        }
        (void)munmap(made, ARENA_SIZE); /* another thread was first, whose arena is in `known` */
    }
    return known;
}

static void *take_memory(size_t alignment, size_t size)
{
    char *base = find_arena();
    const size_t align = alignment < HEAD ? HEAD : alignment;
    const size_t room = (size + align + HEAD + 63) / 64 * 64;
    const size_t at = base != NULL && size < ARENA_SIZE ? atomic_fetch_add(&used, room) : 0;
    if (base == NULL || size >= ARENA_SIZE || at + room > ARENA_SIZE) {
        errno = ENOMEM;
        return NULL;
    }
    char *given = (char *)(((uintptr_t)base + at + HEAD + align - 1) / align * align);
    memcpy(given - HEAD, &size, sizeof(size));
    return given;
}

static void expect_own(const void *memory)
{
    static const char words[] = "allocator: this memory is another's\n";
    const char *base = atomic_load(&arena);
    const char *at = (const char *)memory;
    if (at < base || at >= base + ARENA_SIZE) {
        (void)!write(2, words, sizeof(words) - 1);
        _exit(99);
    }
}

EXPORT void *malloc(size_t size)
{
    return take_memory(HEAD, size);
}

EXPORT void *calloc(size_t count, size_t size)
{
    size_t whole = 0;
    return __builtin_mul_overflow(count, size, &whole) ? NULL : take_memory(HEAD, whole); /* 0s */
}

EXPORT void free(void *memory)
{
    if (memory != NULL) {
        expect_own(memory);
    }
}

EXPORT void *realloc(void *memory, size_t size)
{
    size_t before = 0;
    void *given = take_memory(HEAD, size);
    if (memory != NULL && given != NULL) {
        expect_own(memory);
        memcpy(&before, (char *)memory - HEAD, sizeof(before));
        memcpy(given, memory, before < size ? before : size);
    }
    return given;
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    return take_memory(alignment, size);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    return take_memory(alignment, size);
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t size)
{
    *out = take_memory(alignment, size);
    return *out != NULL ? 0 : ENOMEM;
}

EXPORT size_t malloc_usable_size(void *memory)
{
    size_t size = 0;
    if (memory != NULL) {
        expect_own(memory);
        memcpy(&size, (char *)memory - HEAD, sizeof(size));
    }
    return size;
}
