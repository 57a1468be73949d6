/* Bytes that claim to be a manifest: refused, or read and written back as the same bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "headers/header_list.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    kn_manifest manifest;
    if (kn_manifest_parse(kn_span_of(data, size), &manifest) == KILN_OK) {
        size_t letters = 0;
        for (size_t i = 0; i < manifest.header_count; i++) {
            letters += strlen(kn_manifest_name(&manifest, manifest.headers[i].place.name));
            letters += strlen(kn_manifest_name(&manifest, manifest.headers[i].written));
        }
        for (size_t i = 0; i < manifest.absent_count; i++) {
            letters += strlen(kn_manifest_name(&manifest, manifest.absent[i].name));
        }
        size_t joined = 0;
        size_t expected = 0;
        for (size_t i = 0; i < manifest.folder_count; i++) {
            const kn_manifest_folder *folder = &manifest.folders[i];
            letters += strnlen(kn_manifest_name(&manifest, folder->name), folder->length);
            for (uint32_t at = folder->first_header; at != 0; joined++) {
                at = manifest.headers[at - 1].place.next;
            }
            for (uint32_t at = folder->first_absent; at != 0; joined++) {
                at = manifest.absent[at - 1].next;
            }
        }
        for (size_t i = 0; i < manifest.header_count; i++) {
            expected += manifest.headers[i].place.folder != 0;
        }
        for (size_t i = 0; i < manifest.absent_count; i++) {
            expected += manifest.absent[i].folder != 0;
        }
        if (joined != expected) {
            abort(); /* a row in a directory that no check would come to */
        }
        kn_strbuf again;
        kn_strbuf_init(&again, 0);
        kn_manifest_write(&manifest, true, &again);
        if (letters < manifest.header_count * 2 + manifest.absent_count ||
            (kn_strbuf_ok(&again) &&
             (again.length != size || memcmp(again.data, data, size) != 0))) {
            abort();
        }
        kn_strbuf_deinit(&again);
    }
    kn_manifest_deinit(&manifest);
    return 0;
}
