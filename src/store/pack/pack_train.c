/* Trains with zstd's own method and weighs the result. This file must not know what a pack is. */
#include "store/pack/pack_train.h"

#include <stdint.h>
#include <stdlib.h>

#include <zdict.h>
#include <zstd.h>

#define SAMPLES_MIN 8
#define DICTIONARY_MIN ((size_t)2 << 10)
#define DICTIONARY_MAX ((size_t)110 << 10)

/* What the bodies come to, compressed one by one. 0: it could not be found out. */
static size_t weigh_samples(const char *samples, const size_t *sizes, size_t count, int level,
                            const ZSTD_CDict *dictionary)
{
    size_t largest = 0, sum = 0;
    for (size_t i = 0; i < count; i++) {
        largest = sizes[i] > largest ? sizes[i] : largest;
    }
    const size_t room = ZSTD_compressBound(largest);
    char *packed = malloc(room);
    ZSTD_CCtx *context = ZSTD_createCCtx();
    for (size_t i = 0; packed != NULL && context != NULL && i < count; i++) {
        size_t got =
            dictionary != NULL
                ? ZSTD_compress_usingCDict(context, packed, room, samples, sizes[i], dictionary)
                : ZSTD_compressCCtx(context, packed, room, samples, sizes[i], level);
        sum += ZSTD_isError(got) ? sizes[i] : got;
        samples += sizes[i];
    }
    (void)ZSTD_freeCCtx(context);
    free(packed);
    return sum;
}

static bool dictionary_pays(const char *samples, const size_t *sizes, size_t count, int level,
                            const void *dictionary, size_t size)
{
    ZSTD_CDict *made = ZSTD_createCDict(dictionary, size, level);
    size_t with = made != NULL ? weigh_samples(samples, sizes, count, level, made) : 0;
    size_t without = weigh_samples(samples, sizes, count, level, NULL);
    (void)ZSTD_freeCDict(made);
    return with > 0 && with + size < without;
}

void kn_pack_train(const char *samples, const size_t *sizes, size_t count, int level,
                   void **out_dictionary, size_t *out_size)
{
    *out_dictionary = NULL;
    *out_size = 0;
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        total += sizes[i];
    }
    /* zstd's advice is a hundredth of what is trained on; packs are small, and an eighth still
     * pays where entries are alike. */
    size_t room = total / 8;
    room = room > DICTIONARY_MAX ? DICTIONARY_MAX : room;
    if (count < SAMPLES_MIN || count > UINT32_MAX || room < DICTIONARY_MIN) {
        return;
    }
    void *dictionary = malloc(room);
    if (dictionary == NULL) {
        return;
    }
    size_t size = ZDICT_trainFromBuffer(dictionary, room, samples, sizes, (unsigned)count);
    if (ZDICT_isError(size) || !dictionary_pays(samples, sizes, count, level, dictionary, size)) {
        free(dictionary);
        return;
    }
    *out_dictionary = dictionary;
    *out_size = size;
}
