/* GLSL of any kind put into one text, with itself as the header that it may include; and the same
 * bytes as an artifact. */
#include "apis/opengl/backend/container.h"
#include "fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const kiln_header header = {"a", (const char *)data, size};
    kiln_source source = KILN_SOURCE_INIT;
    kn_gl_text text;
    kn_gl_container container;
    source.language = KILN_LANG_GLSL;
    source.text = data;
    source.length = size;
    source.headers = &header;
    source.header_count = 1;
    kn_gl_text_init(&text);
    if (kn_gl_flatten(&source, &text, NULL) == KILN_OK &&
        (text.head > text.text.length || strncmp(text.text.data, "#version", 8) != 0)) {
        /* Only a text that begins in some other way with its own version line may differ. */
        const char *at = text.text.data + strspn(text.text.data, " \t#");
        if (text.head > text.text.length || strncmp(at, "version", 7) != 0) {
            abort();
        }
    }
    kn_gl_text_deinit(&text);
    if (kn_gl_container_read(data, size, &container)) {
        for (size_t i = 0; i < container.part_count; i++) {
            const uint8_t *part = (const uint8_t *)container.parts[i].data;
            if (part < data || container.parts[i].size > (size_t)(data + size - part)) {
                abort();
            }
        }
    }
    return 0;
}
