/* SPIR-V reflection in two passes over the words: collect what ids are, then put entries, bindings
 * and push constants together. */
#include "apis/vulkan/backend/spirv.h"

#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/text.h"

enum { MAGIC = 0x07230203, HEADER_WORDS = 5, MAX_BOUND = 1 << 20 };

#define NONE UINT32_MAX

/* Opcodes, decorations and storage classes that reflection looks at (SPIR-V 1.6, section 3). */
enum {
    OP_NAME = 5,
    OP_MEMBER_NAME = 6,
    OP_ENTRY_POINT = 15,
    OP_EXECUTION_MODE = 16,
    OP_TYPE_INT = 21,
    OP_TYPE_FLOAT = 22,
    OP_TYPE_VECTOR = 23,
    OP_TYPE_STRUCT = 30,
    OP_TYPE_POINTER = 32,
    OP_CONSTANT = 43,
    OP_SPEC_CONSTANT = 50,
    OP_SPEC_CONSTANT_COMPOSITE = 51,
    OP_CONSTANT_COMPOSITE = 44,
    OP_VARIABLE = 59,
    OP_DECORATE = 71,
    OP_MEMBER_DECORATE = 72,
    OP_EXECUTION_MODE_ID = 331,
    DECORATION_SPEC_ID = 1,
    DECORATION_BUFFER_BLOCK = 3,
    DECORATION_BUILT_IN = 11,
    DECORATION_BINDING = 33,
    DECORATION_DESCRIPTOR_SET = 34,
    DECORATION_OFFSET = 35,
    BUILT_IN_WORKGROUP_SIZE = 25,
    MODE_LOCAL_SIZE = 17,
    MODE_LOCAL_SIZE_ID = 38,
    MODEL_GL_COMPUTE = 5,
    CLASS_UNIFORM_CONSTANT = 0,
    CLASS_UNIFORM = 2,
    CLASS_PUSH_CONSTANT = 9,
    CLASS_STORAGE_BUFFER = 12,
};

/* What is known of one id; `at` is the word where it was defined, 0 if it was not. */
typedef struct id_facts {
    uint32_t at, name_at;
    uint32_t set, binding, spec_id;
    bool buffer_block, workgroup_size;
} id_facts;

typedef struct reader {
    const uint32_t *words;
    size_t count;
    uint32_t bound;
    id_facts *ids;
    const char *name;
    kiln_diag *diag;
    /* Of the entries with LocalSizeId: the ids, else 0, which is none. */
    uint32_t local_ids[KN_SPIRV_MAX_ENTRIES][3];
} reader;

static kiln_status refuse_module(const reader *r, const char *why)
{
    return kiln_diag_set(r->diag, KILN_E_INVALID, NULL, r->name, "%s", why);
}

static uint32_t opcode_at(const reader *r, size_t at)
{
    return r->words[at] & 0xffff;
}

static uint32_t length_at(const reader *r, size_t at)
{
    return r->words[at] >> 16;
}

/* The lowest eight bits of a word are the first octet of a string, whatever the machine's byte
 * order is. */
static char octet_at(const reader *r, size_t at, size_t index)
{
    return (char)(r->words[at + index / 4] >> (8 * (index % 4)) & 0xff);
}

/* A literal string inside an instruction, cut to the field; false if it is not terminated there.
 * `out_cut` is NULL for names that are only shown. */
static bool read_string(const reader *r, size_t at, size_t end, char *field, size_t field_size,
                        bool *out_cut)
{
    const size_t room = at < end ? (end - at) * 4 : 0;
    size_t length = 0;
    while (length < room && octet_at(r, at, length) != '\0') {
        length++;
    }
    if (length == room) {
        return false;
    }
    char text[KN_SPIRV_ENTRY_NAME + 1]; /* longer than any field, which cuts it */
    if (out_cut != NULL) {
        *out_cut = length >= field_size;
    }
    length = length < sizeof(text) ? length : sizeof(text) - 1;
    for (size_t i = 0; i < length; i++) {
        text[i] = octet_at(r, at, i);
    }
    text[length] = '\0';
    kn_text_put(field, field_size, text);
    return true;
}

/* The id that a type, a constant or a variable defines, or NONE. */
static uint32_t result_of(const reader *r, size_t at, uint32_t length)
{
    const uint32_t opcode = opcode_at(r, at);
    if (opcode >= OP_TYPE_INT && opcode <= OP_TYPE_POINTER && length >= 2) {
        return r->words[at + 1];
    }
    return opcode >= OP_CONSTANT && opcode <= OP_VARIABLE && length >= 3 ? r->words[at + 2] : NONE;
}

static void note_decoration(const reader *r, size_t at, uint32_t length)
{
    if (length < 3 || r->words[at + 1] >= r->bound) {
        return;
    }
    id_facts *facts = &r->ids[r->words[at + 1]];
    const uint32_t value = length >= 4 ? r->words[at + 3] : 0;
    switch (r->words[at + 2]) {
    case DECORATION_SPEC_ID:
        facts->spec_id = value;
        break;
    case DECORATION_BUFFER_BLOCK:
        facts->buffer_block = true;
        break;
    case DECORATION_BUILT_IN:
        facts->workgroup_size = value == BUILT_IN_WORKGROUP_SIZE;
        break;
    case DECORATION_BINDING:
        facts->binding = value;
        break;
    case DECORATION_DESCRIPTOR_SET:
        facts->set = value;
        break;
    default:
        break;
    }
}

static kiln_status note_entry(const reader *r, size_t at, uint32_t length, kn_spirv *module)
{
    if (length < 4 || r->words[at + 1] != MODEL_GL_COMPUTE) {
        return KILN_OK;
    }
    if (module->entry_count == KN_SPIRV_MAX_ENTRIES) {
        return refuse_module(r, "more than 64 entry points");
    }
    kn_spirv_entry *entry = &module->entries[module->entry_count];
    entry->id = r->words[at + 2];
    bool cut = false;
    if (!read_string(r, at + 3, at + length, entry->name, sizeof(entry->name), &cut)) {
        return refuse_module(r, "an entry point's name is damaged");
    }
    if (cut) {
        return refuse_module(r, "an entry point's name is longer than 255 bytes");
    }
    module->entry_count++;
    return KILN_OK;
}

static void note_mode(reader *r, size_t at, uint32_t length, kn_spirv *module)
{
    const bool by_id = opcode_at(r, at) == OP_EXECUTION_MODE_ID;
    if (length < 6 || r->words[at + 2] != (by_id ? MODE_LOCAL_SIZE_ID : MODE_LOCAL_SIZE)) {
        return;
    }
    for (size_t i = 0; i < module->entry_count; i++) {
        for (size_t j = 0; j < 3 && module->entries[i].id == r->words[at + 1]; j++) {
            module->entries[i].local[j] = by_id ? 0 : r->words[at + 3 + j];
            r->local_ids[i][j] = by_id ? r->words[at + 3 + j] : 0;
        }
    }
}

static kiln_status first_pass(reader *r, kn_spirv *module)
{
    for (size_t at = HEADER_WORDS; at < r->count;) {
        const uint32_t length = length_at(r, at);
        if (length == 0 || length > r->count - at) {
            return refuse_module(r, "its instructions are cut short");
        }
        const uint32_t result = result_of(r, at, length);
        if (result != NONE && result < r->bound) {
            r->ids[result].at = (uint32_t)at;
        }
        kiln_status status = KILN_OK;
        switch (opcode_at(r, at)) {
        case OP_NAME:
            if (length >= 3 && r->words[at + 1] < r->bound) {
                r->ids[r->words[at + 1]].name_at = (uint32_t)at;
            }
            break;
        case OP_DECORATE:
            note_decoration(r, at, length);
            break;
        case OP_ENTRY_POINT:
            status = note_entry(r, at, length, module);
            break;
        case OP_EXECUTION_MODE:
        case OP_EXECUTION_MODE_ID:
            note_mode(r, at, length, module);
            break;
        default:
            break;
        }
        if (status != KILN_OK) {
            return status;
        }
        at += length;
    }
    return KILN_OK;
}

/* The word where an id is defined, if it is by `opcode` with at least `length` words; else 0. */
static size_t defined_by(const reader *r, uint32_t id, uint32_t opcode, uint32_t length)
{
    const size_t at = id < r->bound ? r->ids[id].at : 0;
    return at != 0 && opcode_at(r, at) == opcode && length_at(r, at) >= length ? at : 0;
}

/* Size and name of a scalar or vector type; 0 if it is anything else. */
static uint32_t type_size(const reader *r, uint32_t id, char *name, size_t name_size)
{
    size_t at = defined_by(r, id, OP_TYPE_INT, 4);
    if (at != 0) {
        kn_text_putf(name, name_size, "%c%u", r->words[at + 3] != 0 ? 'i' : 'u', r->words[at + 2]);
        return r->words[at + 2] / 8;
    }
    at = defined_by(r, id, OP_TYPE_FLOAT, 3);
    if (at != 0) {
        kn_text_putf(name, name_size, "f%u", r->words[at + 2]);
        return r->words[at + 2] / 8;
    }
    at = defined_by(r, id, OP_TYPE_VECTOR, 4);
    /* A vector of a vector does not exist, so the recursion is one deep; damaged input may say so.
     */
    if (at != 0 && defined_by(r, r->words[at + 2], OP_TYPE_VECTOR, 4) == 0) {
        char scalar[8] = {0};
        const uint32_t size = type_size(r, r->words[at + 2], scalar, sizeof(scalar));
        const uint32_t count = r->words[at + 3] <= 4 ? r->words[at + 3] : 0;
        kn_text_putf(name, name_size, "%sx%u", scalar, count);
        return size * count;
    }
    return 0;
}

static void find_name(const reader *r, uint32_t id, char *field, size_t field_size)
{
    const size_t at = id < r->bound ? r->ids[id].name_at : 0;
    if (at == 0 || !read_string(r, at + 2, at + length_at(r, at), field, field_size, NULL)) {
        field[0] = '\0';
    }
}

/* Offset and name of a struct's member, which have instructions of their own. */
static void find_member(const reader *r, uint32_t id, uint32_t index, kn_spirv_member *member)
{
    for (size_t at = HEADER_WORDS; at < r->count; at += length_at(r, at)) {
        const uint32_t length = length_at(r, at);
        if (length < 4 || r->words[at + 1] != id || r->words[at + 2] != index) {
            continue;
        }
        if (opcode_at(r, at) == OP_MEMBER_NAME) {
            (void)read_string(r, at + 3, at + length, member->name, sizeof(member->name), NULL);
        } else if (opcode_at(r, at) == OP_MEMBER_DECORATE && length >= 5 &&
                   r->words[at + 3] == DECORATION_OFFSET) {
            member->offset = r->words[at + 4];
        }
    }
}

static kiln_status add_push_constants(const reader *r, uint32_t type, kn_spirv *module)
{
    const size_t at = defined_by(r, type, OP_TYPE_STRUCT, 2);
    if (at == 0) {
        return refuse_module(r, "its push constants are not a block");
    }
    for (uint32_t i = 0; i + 2 < length_at(r, at); i++) {
        kn_spirv_member member = {0};
        member.size = type_size(r, r->words[at + 2 + i], member.type, sizeof(member.type));
        find_member(r, type, i, &member);
        if (member.size == 0 || module->member_count == KN_SPIRV_MAX_MEMBERS ||
            member.offset > 4096) {
            return refuse_module(r, "push constants must be at most 32 scalars or vectors");
        }
        size_t place = module->member_count++;
        for (; place > 0 && module->members[place - 1].offset > member.offset; place--) {
            module->members[place] = module->members[place - 1];
        }
        module->members[place] = member;
        if (member.offset + member.size > module->push_size) {
            module->push_size = (member.offset + member.size + 3) & ~3U;
        }
    }
    return KILN_OK;
}

static kiln_status add_binding(const reader *r, uint32_t id, bool uniform, kn_spirv *module)
{
    const id_facts *facts = &r->ids[id];
    if (facts->set != 0 && facts->set != NONE) {
        return refuse_module(r, "it uses a descriptor set other than 0; put all buffers in set 0");
    }
    for (size_t i = 0; i < module->binding_count; i++) {
        if (module->bindings[i].binding == facts->binding) {
            return module->bindings[i].uniform == uniform
                       ? KILN_OK
                       : refuse_module(r, "a storage buffer and a uniform block share a binding");
        }
    }
    if (module->binding_count == KN_SPIRV_MAX_BINDINGS || facts->binding == NONE) {
        return refuse_module(r, "it has more than 32 buffers, or one without a binding");
    }
    kn_spirv_binding binding = {facts->binding, uniform, {0}};
    find_name(r, id, binding.name, sizeof(binding.name));
    size_t place = module->binding_count++;
    for (; place > 0 && module->bindings[place - 1].binding > binding.binding; place--) {
        module->bindings[place] = module->bindings[place - 1];
    }
    module->bindings[place] = binding;
    return KILN_OK;
}

static kiln_status add_variable(const reader *r, size_t at, kn_spirv *module)
{
    const uint32_t id = r->words[at + 2];
    const uint32_t storage = r->words[at + 3];
    if (id >= r->bound || (storage != CLASS_UNIFORM_CONSTANT && storage != CLASS_UNIFORM &&
                           storage != CLASS_PUSH_CONSTANT && storage != CLASS_STORAGE_BUFFER)) {
        return KILN_OK;
    }
    const size_t pointer = defined_by(r, r->words[at + 1], OP_TYPE_POINTER, 4);
    const uint32_t type = pointer != 0 ? r->words[pointer + 3] : NONE;
    if (storage == CLASS_UNIFORM_CONSTANT) {
        return refuse_module(r, "it uses images or samplers, which kiln does not bind");
    }
    if (storage == CLASS_PUSH_CONSTANT) {
        return add_push_constants(r, type, module);
    }
    if (defined_by(r, type, OP_TYPE_STRUCT, 2) == 0) {
        return refuse_module(
            r, "it has an array of buffers under one binding, which kiln does not bind");
    }
    const bool buffer_block = type < r->bound && r->ids[type].buffer_block;
    return add_binding(r, id, storage == CLASS_UNIFORM && !buffer_block, module);
}

/* One component of an entry's work-group size: a specialisation constant, or a plain one. */
static void set_local(const reader *r, uint32_t id, size_t dimension, kn_spirv_entry *entry)
{
    size_t at = defined_by(r, id, OP_SPEC_CONSTANT, 4);
    entry->specialised[dimension] = at != 0 && r->ids[id].spec_id != NONE;
    entry->spec_id[dimension] = entry->specialised[dimension] ? r->ids[id].spec_id : 0;
    at = at != 0 ? at : defined_by(r, id, OP_CONSTANT, 4);
    if (at != 0) {
        entry->local[dimension] = r->words[at + 3];
    }
}

static kiln_status second_pass(const reader *r, kn_spirv *module)
{
    for (size_t i = 0; i < 3 * module->entry_count; i++) {
        if (r->local_ids[i / 3][i % 3] != 0) {
            set_local(r, r->local_ids[i / 3][i % 3], i % 3, &module->entries[i / 3]);
        }
    }
    for (size_t at = HEADER_WORDS; at < r->count; at += length_at(r, at)) {
        const uint32_t length = length_at(r, at);
        const uint32_t opcode = opcode_at(r, at);
        if (opcode == OP_VARIABLE && length >= 4) {
            kiln_status status = add_variable(r, at, module);
            if (status != KILN_OK) {
                return status;
            }
        }
        /* The constant decorated WorkgroupSize overrides both modes, of all entries (SPIR-V,
         * "Decoration"). */
        if ((opcode == OP_SPEC_CONSTANT_COMPOSITE || opcode == OP_CONSTANT_COMPOSITE) &&
            length >= 6 && r->words[at + 2] < r->bound && r->ids[r->words[at + 2]].workgroup_size) {
            for (size_t i = 0; i < 3 * module->entry_count; i++) {
                set_local(r, r->words[at + 3 + i % 3], i % 3, &module->entries[i / 3]);
            }
        }
    }
    return module->entry_count > 0 ? KILN_OK : refuse_module(r, "it has no compute entry point");
}

kiln_status kn_spirv_reflect(const void *data, size_t size, const char *name, kn_spirv *out_module,
                             kiln_diag *diag)
{
    memset(out_module, 0, sizeof(*out_module));
    reader r = {.name = name, .diag = diag};
    /* Copied: instructions are words, and the bytes may lie anywhere. */
    uint32_t *words = (uint32_t *)malloc(size > 0 ? size : 1);
    kiln_status status;
    if (words == NULL) {
        return kn_no_memory(diag, name);
    }
    memcpy(words, data, size);
    r.words = words;
    r.count = size / 4;
    if (size % 4 != 0 || r.count <= HEADER_WORDS || words[0] != MAGIC) {
        status = refuse_module(&r, "it is not a SPIR-V module of this machine's byte order");
        goto cleanup;
    }
    r.bound = words[3];
    if (r.bound == 0 || r.bound > MAX_BOUND) {
        status = refuse_module(&r, "its number of ids is out of range");
        goto cleanup;
    }
    r.ids = (id_facts *)calloc(r.bound, sizeof(id_facts));
    if (r.ids == NULL) {
        status = kn_no_memory(diag, name);
        goto cleanup;
    }
    for (uint32_t i = 0; i < r.bound; i++) {
        r.ids[i].set = NONE;
        r.ids[i].binding = NONE;
        r.ids[i].spec_id = NONE;
    }
    status = first_pass(&r, out_module);
    if (status == KILN_OK) {
        status = second_pass(&r, out_module);
    }
cleanup:
    free(r.ids);
    free(words);
    return status;
}
