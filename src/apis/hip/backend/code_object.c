/* See code_object.h. */
#include "apis/hip/backend/code_object.h"

#include <stdint.h>
#include <string.h>

#include "apis/hip/backend/metadata.h"
#include "apis/hip/backend/processor.h"
#include "base/checked.h"
#include "base/text.h"

enum {
    MACHINE_AMDGPU = 224,
    HEADER_SIZE = 64,
    PROGRAM_SIZE = 56,
    NOTE_SEGMENT = 4,
    NOTE_METADATA = 32,
    NOTE_HEADER = 12,
    ABI_V4 = 2, /* of EI_ABIVERSION: the first whose flags and metadata name all of a target */
    MACH = 0xff,
    XNACK = 0x300,
    XNACK_ANY = 0x100,
    SRAMECC = 0xc00,
    SRAMECC_ANY = 0x400,
};

/* The metadata among the notes of a segment; empty if there is none. */
static kn_bytes find_note(kn_bytes notes)
{
    static const char owner[] = "AMDGPU";
    while (notes.size >= NOTE_HEADER) {
        const uint64_t name_size = kn_get_u32(notes.data);
        const uint64_t size = kn_get_u32(notes.data + 4);
        const uint64_t name_end = NOTE_HEADER + ((name_size + 3) & ~UINT64_C(3));
        const uint64_t end = name_end + ((size + 3) & ~UINT64_C(3));
        const kn_bytes contents = kn_bytes_part(notes, name_end, size);
        if (name_end > notes.size || contents.size != size) {
            break;
        }
        if (kn_get_u32(notes.data + 8) == NOTE_METADATA && name_size == sizeof(owner) &&
            memcmp(notes.data + NOTE_HEADER, owner, sizeof(owner)) == 0) {
            return contents;
        }
        notes = kn_bytes_part(notes, end, end <= notes.size ? notes.size - end : 0);
    }
    return (kn_bytes){notes.data, 0};
}

static kn_bytes find_metadata(kn_bytes file)
{
    const uint64_t table = kn_get_u64(file.data + 32);
    const uint32_t count = kn_get_u16(file.data + 56);
    kn_bytes found = {file.data, 0};
    for (uint32_t i = 0; i < count && found.size == 0 && table <= file.size; i++) {
        const kn_bytes row = kn_bytes_part(file, table + (uint64_t)i * PROGRAM_SIZE, PROGRAM_SIZE);
        if (row.size == PROGRAM_SIZE && kn_get_u32(row.data) == NOTE_SEGMENT) {
            found =
                find_note(kn_bytes_part(file, kn_get_u64(row.data + 8), kn_get_u64(row.data + 32)));
        }
    }
    return found;
}

/* A choice of the target as a field of the flags has it: 1 any, 2 off, 3 on, in place. */
static bool is_choice(uint32_t flags, uint32_t mask, uint32_t any, char choice)
{
    const uint32_t field = flags & mask;
    return choice == '\0' ? field == 0 || field == any : field == any * (choice == '+' ? 3u : 2u);
}

/* NULL, or what is wrong with a file's header. */
static const char *find_header_fault(kn_bytes file)
{
    static const unsigned char magic[] = {0x7f, 'E', 'L', 'F', 2, 1};
    if (file.size >= 4 && memcmp(file.data, "BC\xC0\xDE", 4) == 0) {
        return "it is LLVM's bitcode (-fgpu-rdc?), not a code object";
    }
    if (file.size < HEADER_SIZE || memcmp(file.data, magic, sizeof(magic)) != 0) {
        return "it is not an ELF file of 64 bits";
    }
    if (kn_get_u16(file.data + 18) != MACHINE_AMDGPU) {
        return "it is an ELF file for another machine than an AMD GPU";
    }
    const uint64_t table = kn_get_u64(file.data + 40);
    const uint64_t rows = (uint64_t)kn_get_u16(file.data + 60) * kn_get_u16(file.data + 58);
    if (kn_get_u16(file.data + 54) != PROGRAM_SIZE || table > file.size ||
        rows > file.size - table) {
        return "it is cut off";
    }
    return NULL;
}

static bool is_for(kn_bytes file, const kn_hip_target *target)
{
    const uint32_t flags = kn_get_u32(file.data + 48);
    const uint32_t mach = kn_hip_processor_mach(target->processor);
    if (mach != 0 && (flags & MACH) != mach) {
        return false;
    }
    return file.data[8] < ABI_V4 || (is_choice(flags, XNACK, XNACK_ANY, target->xnack) &&
                                     is_choice(flags, SRAMECC, SRAMECC_ANY, target->sramecc));
}

/* "amdgcn-amd-amdhsa--gfx90a:xnack-": what stands before the processor is the same for all. */
static bool names_target(kn_metadata_text text, const char *target)
{
    const size_t length = strlen(target);
    return text.data == NULL ||
           (text.length > length && text.data[text.length - length - 1] == '-' &&
            memcmp(text.data + text.length - length, target, length) == 0);
}

bool kn_code_object_check(const void *data, size_t size, const kn_hip_target *target,
                          char why[KN_CODE_OBJECT_WHY])
{
    const kn_bytes file = {(const unsigned char *)data, size};
    const char *fault = find_header_fault(file);
    if (fault != NULL) {
        kn_text_put(why, KN_CODE_OBJECT_WHY, fault);
        return false;
    }
    const kn_bytes metadata = find_metadata(file);
    kn_metadata_text named = {NULL, 0};
    if (!is_for(file, target)) {
        kn_text_putf(why, KN_CODE_OBJECT_WHY, "its header (flags 0x%x) is not %s's",
                     (unsigned)kn_get_u32(file.data + 48), target->name);
    } else if (metadata.size == 0 ||
               !kn_metadata_read(metadata.data, metadata.size, NULL, NULL, &named)) {
        kn_text_put(why, KN_CODE_OBJECT_WHY, "its metadata is missing or malformed");
    } else if (!names_target(named, target->name)) {
        kn_text_putf(why, KN_CODE_OBJECT_WHY, "its metadata names %.*s, not %s",
                     named.length < 80 ? (int)named.length : 80, named.data, target->name);
    } else {
        return true;
    }
    return false;
}

typedef struct search {
    const char *name;
    bool found;
    kn_metadata_text args; /* of the first kernel of that name */
} search;

static void compare_kernel(void *user, const kn_metadata_kernel *kernel)
{
    search *wanted = (search *)user;
    if (!wanted->found && kernel->name.length == strlen(wanted->name) &&
        memcmp(kernel->name.data, wanted->name, kernel->name.length) == 0) {
        wanted->found = true;
        wanted->args = kernel->args;
    }
}

/* A variable is in the table of symbols' names only: terminated, and after another's end. */
static bool has_text(kn_bytes file, const char *name)
{
    const size_t length = strlen(name) + 1;
    for (size_t i = 1; length > 1 && i + length <= file.size; i++) {
        if (file.data[i - 1] == '\0' && memcmp(file.data + i, name, length) == 0) {
            return true;
        }
    }
    return false;
}

bool kn_code_object_has(const void *data, size_t size, const char *name)
{
    const kn_bytes file = {(const unsigned char *)data, size};
    const kn_bytes metadata = find_metadata(file);
    kn_metadata_text target = {NULL, 0};
    search wanted = {name, false, {NULL, 0}};
    (void)kn_metadata_read(metadata.data, metadata.size, compare_kernel, &wanted, &target);
    return wanted.found || has_text(file, name);
}

bool kn_code_object_params(const void *data, size_t size, const char *name,
                           kn_metadata_arg_visit *visit, void *user)
{
    const kn_bytes file = {(const unsigned char *)data, size};
    const kn_bytes metadata = find_metadata(file);
    kn_metadata_text target = {NULL, 0};
    search wanted = {name, false, {NULL, 0}};
    if (!kn_metadata_read(metadata.data, metadata.size, compare_kernel, &wanted, &target) ||
        !wanted.found) {
        return false;
    }
    return wanted.args.data == NULL || kn_metadata_read_args(wanted.args, visit, user);
}
