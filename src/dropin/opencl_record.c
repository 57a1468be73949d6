/* See opencl_record.h. */
#include "dropin/opencl_record.h"

#include "base/text.h"

bool kn_opencl_is_recorded(const kn_opencl_request *request)
{
    return request->bypass[0] == '\0' && request->wish->device_count == 1;
}

void kn_opencl_draft(const kn_opencl_request *request, uint32_t flags, kn_draft *draft,
                     char *target, size_t size)
{
    const kn_opencl_wish *wish = request->wish;
    draft->program.frontend = KN_FRONTEND_OPENCL;
    draft->program.flags = flags | (wish->link ? KN_RECORDED_LINK : 0);
    draft->program.language = KILN_LANG_OPENCL_C;
    draft->program.link_options = wish->link_options;
    for (size_t i = 0; i < wish->text_count; i++) {
        const kn_opencl_text *text = &wish->texts[i];
        kn_draft_add_text(draft, text->text, text->length, text->options, text->headers,
                          text->header_count);
        for (size_t k = 0; k < KN_OPENCL_CLOSURES; k++) {
            kn_draft_add_closure(draft, request->parts[i].closures[k]);
        }
    }
    kn_text_putf(target, size, "opencl:%s", request->unit.info.target);
}

void kn_opencl_record(const kn_opencl_request *request, const kiln_key *key, uint32_t flags,
                      uint64_t compile_ns)
{
    char target[96];
    kn_draft draft;
    if (kn_opencl_is_recorded(request) && kn_draft_begin(&draft, request->cache, key)) {
        kn_opencl_draft(request, flags, &draft, target, sizeof(target));
        kn_draft_end(&draft, target, compile_ns);
    }
}
