/* Bytes that claim to be a header list: refused, or read and written back as the same bytes. */
#include "fuzz/fuzz.h"
#include "headers/header_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kn_header_list list;
    if (kn_header_list_parse(kn_span_of(data, size), &list) == KILN_OK) {
        size_t letters = 0;
        for (size_t i = 0; i < list.header_count; i++) {
            letters += strlen(kn_header_list_name(&list, list.headers[i].place.name));
            letters += strlen(kn_header_list_name(&list, list.headers[i].written));
        }
        for (size_t i = 0; i < list.absent_count; i++) {
            letters += strlen(kn_header_list_name(&list, list.absent[i].name));
        }
        size_t joined = 0;
        size_t expected = 0;
        for (size_t i = 0; i < list.dir_count; i++) {
            const kn_header_list_directory *dir = &list.dirs[i];
            letters += strnlen(kn_header_list_name(&list, dir->name), dir->length);
            for (uint32_t at = dir->first_header; at != 0; joined++) {
                at = list.headers[at - 1].place.next;
            }
            for (uint32_t at = dir->first_absent; at != 0; joined++) {
                at = list.absent[at - 1].next;
            }
        }
        for (size_t i = 0; i < list.header_count; i++) {
            expected += list.headers[i].place.dir != 0;
        }
        for (size_t i = 0; i < list.absent_count; i++) {
            expected += list.absent[i].dir != 0;
        }
        if (joined != expected) {
            abort(); /* a row in a directory that no check would come to */
        }
        kn_strbuf again;
        kn_strbuf_init(&again, 0);
        kn_header_list_write(&list, true, &again);
        if (letters < list.header_count * 2 + list.absent_count ||
            (kn_strbuf_ok(&again) &&
             (again.length != size || memcmp(again.data, data, size) != 0))) {
            abort();
        }
        kn_strbuf_deinit(&again);
    }
    kn_header_list_deinit(&list);
    return 0;
}
