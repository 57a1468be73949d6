/* Any bytes as the record of statistics, and as a recipe's text: an end, in bounds. What is read as
 * a record is written as the same bytes, but for the room that nobody uses yet. */
#include "fuzz/fuzz.h"
#include "key/recipe.h"
#include "store/format/checksum.h"
#include "store/format/stats.h"

static void read_record(const uint8_t *data, size_t size)
{
    unsigned char bytes[KN_RECORD_SIZE], back[KN_RECORD_SIZE];
    kn_record record;
    (void)kn_record_parse(kn_span_of(data, size), &record);
    if (size != sizeof bytes) {
        return;
    }
    memcpy(bytes, data, sizeof bytes);
    kn_span covered = kn_span_of(bytes + 24, sizeof bytes - 24);
    kn_checksum(&covered, 1, bytes + 8);
    if (kn_record_parse(kn_span_of(bytes, sizeof bytes), &record) == KILN_OK) {
        kn_record_write(&record, back);
        if (memcmp(bytes + 32, back + 32, sizeof bytes - 32) != 0) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kn_span rest = kn_span_of(data, size);
    kn_recipe_field field;
    size_t total = 0;
    while (kn_recipe_next(&rest, &field)) {
        total += field.name.length + field.type.length + field.value.length;
    }
    if (total > size * 2) { /* the header's version counts as type and as value */
        abort();
    }
    read_record(data, size);
    return 0;
}
