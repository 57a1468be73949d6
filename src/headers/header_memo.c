/* See header_memo.h. */
#include "headers/header_memo.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/map.h"
#include "sys/thread.h"

#define FILE_KEY_SIZE 16 /* device and inode */

typedef struct memo_row {
    kn_stamp stamp;
    int64_t read_ns;
    uint8_t digest[32];
} memo_row;

struct kn_header_memo {
    kn_mutex lock;
    kn_map rows;
};

kn_header_memo *kn_header_memo_create(void)
{
    kn_header_memo *memo = (kn_header_memo *)calloc(1, sizeof(*memo));
    if (memo != NULL) {
        kn_mutex_init(&memo->lock);
        kn_map_init(&memo->rows);
    }
    return memo;
}

void kn_header_memo_destroy(kn_header_memo *memo)
{
    size_t cursor = 0;
    void *row = NULL;
    if (memo == NULL) {
        return;
    }
    while (kn_map_next(&memo->rows, &cursor, NULL, NULL, &row)) {
        free(row);
    }
    kn_map_deinit(&memo->rows);
    kn_mutex_deinit(&memo->lock);
    free(memo);
}

static void name_file(const kn_stamp *stamp, unsigned char key[FILE_KEY_SIZE])
{
    kn_put_u64(key, stamp->device);
    kn_put_u64(key + 8, stamp->inode);
}

bool kn_header_memo_find(kn_header_memo *memo, const kn_stamp *now, uint8_t out_digest[32])
{
    unsigned char key[FILE_KEY_SIZE];
    bool holds = false;
    name_file(now, key);
    if (memo != NULL && kn_mutex_try(&memo->lock)) {
        const memo_row *row = (const memo_row *)kn_map_find(&memo->rows, key, sizeof(key));
        holds = row != NULL && kn_stamp_holds(&row->stamp, now, row->read_ns);
        if (holds) {
            memcpy(out_digest, row->digest, sizeof(row->digest));
        }
        kn_mutex_unlock(&memo->lock);
    }
    return holds;
}

bool kn_header_memo_is_empty(kn_header_memo *memo)
{
    bool empty = true;
    if (memo != NULL && kn_mutex_try(&memo->lock)) {
        empty = memo->rows.count == 0;
        kn_mutex_unlock(&memo->lock);
    }
    return empty;
}

/* Under the lock. Without memory the file is read again. */
static void put_row(kn_header_memo *memo, const memo_row *row)
{
    unsigned char key[FILE_KEY_SIZE];
    name_file(&row->stamp, key);
    memo_row *known = (memo_row *)kn_map_find(&memo->rows, key, sizeof(key));
    if (known != NULL) {
        *known = *row;
        return;
    }
    memo_row *made =
        memo->rows.count < KN_HEADER_MEMO_MAX ? (memo_row *)malloc(sizeof(*made)) : NULL;
    if (made == NULL) {
        return;
    }
    *made = *row;
    if (!kn_map_put(&memo->rows, key, sizeof(key), made, NULL)) {
        free(made);
    }
}

void kn_header_memo_put(kn_header_memo *memo, const kn_stamp *stamp, int64_t read_ns,
                        const uint8_t digest[32])
{
    memo_row row = {.stamp = *stamp, .read_ns = read_ns};
    /* One that is too young to be believed later would only take room. */
    if (memo == NULL || !kn_stamp_holds(stamp, stamp, read_ns) || !kn_mutex_try(&memo->lock)) {
        return;
    }
    memcpy(row.digest, digest, sizeof(row.digest));
    put_row(memo, &row);
    kn_mutex_unlock(&memo->lock);
}
