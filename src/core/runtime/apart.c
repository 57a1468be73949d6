/* Directories of copied registrations, and the loader's variable over the call that makes it read
 * them. A loader reads its list once a process. One that does not read its variable (Windows has a
 * registry) crashes with an empty directory as well, so that no driver of it is blamed. */
#include "core/runtime/apart.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "sys/dylib.h"
#include "sys/env.h"
#include "sys/file.h"
#include "sys/paths.h"
#include "sys/process.h"
#include "sys/random.h"
#include "sys/thread.h"

#define BACKEND "opencl"
#define REGISTERED "/etc/OpenCL/vendors"
#define LIBRARY "libOpenCL."
#define REGISTRATION_MAX ((size_t)65536)

bool kn_apart_init(kn_apart *apart, const char *backend)
{
    kn_file_facts facts;
    const char *from = kn_env_get(KN_APART_VARIABLE);
    const char *replaced = kn_env_get("OPENCL_VENDOR_PATH");
    const bool named = from != NULL && from[0] != '\0';
    memset(apart, 0, sizeof(*apart));
    if (strcmp(backend, BACKEND) != 0 || (!named && replaced != NULL && replaced[0] != '\0')) {
        return false;
    }
    from = named ? from : REGISTERED;
    /* A file may be named as well: then there is nothing to take apart. */
    if (kn_file_stat(from, true, &facts, NULL) == KILN_OK && facts.kind == KN_FILE_DIR) {
        apart->from = kn_text_copy(from);
    }
    return apart->from != NULL;
}

static kiln_status remove_name(void *user, const char *name)
{
    char *path = kn_path_join((const char *)user, name);
    if (path != NULL) {
        (void)kn_file_remove(path, NULL);
    }
    free(path);
    return KILN_OK;
}

static void remove_dir(kn_apart *apart)
{
    if (apart->dir != NULL) {
        (void)kn_file_list(apart->dir, remove_name, apart->dir, NULL);
        (void)kn_file_remove_dir(apart->dir);
    }
    free(apart->dir);
    apart->dir = NULL;
}

void kn_apart_deinit(kn_apart *apart)
{
    remove_dir(apart);
    free(apart->from);
    memset(apart, 0, sizeof(*apart));
}

static bool make_dir(kn_apart *apart)
{
    char name[64];
    char *temporary = kn_paths_temporary();
    kn_text_putf(name, sizeof(name), "kiln-drivers-%u-%016" PRIx64, (unsigned)kn_process_id(),
                 kn_random_u64());
    char *dir = temporary != NULL ? kn_path_join(temporary, name) : NULL;
    free(temporary);
    if (dir == NULL || kn_file_make_new_dir(dir, NULL) != KILN_OK) {
        free(dir);
        return false;
    }
    apart->dir = dir;
    return true;
}

/* What cannot be read, the loader could not read either. */
static void copy_file(const char *from, const char *to)
{
    void *data = NULL;
    size_t size = 0;
    kn_file *file = NULL;
    if (kn_file_read(from, REGISTRATION_MAX, false, &data, &size, NULL, NULL) == KILN_OK &&
        kn_file_open(to, true, &file, NULL) == KILN_OK) {
        (void)kn_file_write_at(file, 0, data, size);
    }
    kn_file_close(file);
    free(data);
}

typedef struct filling {
    const kn_apart *apart;
    const char *only, *left_out;
} filling;

static kiln_status copy_registration(void *user, const char *name)
{
    const filling *f = (const filling *)user;
    if (!kn_text_ends(name, KN_APART_END) || (f->only != NULL && strcmp(name, f->only) != 0) ||
        kn_apart_is_left_out(f->left_out, name)) {
        return KILN_OK;
    }
    char *from = kn_path_join(f->apart->from, name);
    char *to = kn_path_join(f->apart->dir, name);
    const bool whole = from != NULL && to != NULL;
    if (whole) {
        copy_file(from, to);
    }
    free(to);
    free(from);
    return whole ? KILN_OK : KILN_E_NOMEM;
}

bool kn_apart_fill(kn_apart *apart, const char *only, const char *left_out)
{
    filling f = {.apart = apart, .only = only, .left_out = left_out};
    remove_dir(apart);
    return make_dir(apart) && kn_file_list(apart->from, copy_registration, &f, NULL) == KILN_OK;
}

bool kn_apart_is_left_out(const char *left_out, const char *name)
{
    const size_t length = strlen(name);
    for (const char *at = strchr(left_out, '/'); at != NULL; at = strchr(at + 1, '/')) {
        if (strncmp(at + 1, name, length) == 0 && at[1 + length] == '/') {
            return true;
        }
    }
    return false;
}

bool kn_apart_leave_out(char left_out[KN_LEFT_OUT_SIZE], const char *name)
{
    const size_t used = strlen(left_out);
    if (used + strlen(name) + 3 > KN_LEFT_OUT_SIZE) {
        return false;
    }
    kn_text_putf(left_out + used, KN_LEFT_OUT_SIZE - used, "%s%s/", used == 0 ? "/" : "", name);
    return true;
}

void kn_apart_describe(const char *left_out, char *text, size_t size)
{
    size_t used = 0;
    kn_text_put(text, size, "");
    while (*left_out == '/' && left_out[1] != '\0') {
        const size_t length = strcspn(left_out + 1, "/");
        kn_text_putf(text + used, size - used, "%s%.*s", used > 0 ? ", " : "", (int)length,
                     left_out + 1);
        used = strlen(text);
        left_out += 1 + length;
    }
}

/* --- in this process -------------------------------------------------------------------------- */

/* What the loader of this process was opened without; empty while kiln has not done so. */
static struct {
    kn_mutex lock;
    char left_out[KN_LEFT_OUT_SIZE];
    bool looked, preloaded;
} opened = {.lock = KN_MUTEX_INIT};

static void match_module(void *user, const char *path, const char *build_id)
{
    bool *found = (bool *)user;
    (void)build_id;
    *found = *found || kn_text_starts(kn_path_name(path), LIBRARY);
}

/* True also where it is unknown. */
static bool may_have_read(void)
{
    bool found = false;
    return !kn_module_each(match_module, &found) || found;
}

bool kn_apart_is_preloaded(const char *backend)
{
    if (strcmp(backend, BACKEND) != 0) {
        return false;
    }
    kn_mutex_lock(&opened.lock);
    if (!opened.looked) {
        opened.looked = true;
        opened.preloaded = may_have_read();
    }
    const bool preloaded = opened.preloaded;
    kn_mutex_unlock(&opened.lock);
    return preloaded;
}

static bool call_with_dir(const kn_apart *apart, kn_apart_open *open, void *user)
{
    const char *now = kn_env_get(KN_APART_VARIABLE);
    char *before = now != NULL ? kn_text_copy(now) : NULL;
    const bool copied = now == NULL || before != NULL;
    const bool set = copied && kn_env_set(KN_APART_VARIABLE, apart->dir);
    now = kn_env_get(KN_APART_VARIABLE);
    /* A program with another user's rights does not read it. */
    const bool heard = set && now != NULL && strcmp(now, apart->dir) == 0;
    if (heard) {
        open(user);
    }
    if (set) {
        (void)kn_env_set(KN_APART_VARIABLE, before);
    }
    free(before);
    return heard;
}

bool kn_apart_call(const char *backend, const char *left_out, kn_apart_open *open, void *user)
{
    kn_apart apart;
    bool called = false;
    if (strcmp(backend, BACKEND) != 0) {
        return false;
    }
    kn_mutex_lock(&opened.lock);
    if (strcmp(opened.left_out, left_out) == 0) {
        open(user); /* the loader has that list already */
        called = true;
    } else if (!may_have_read()) {
        called = kn_apart_init(&apart, backend) && kn_apart_fill(&apart, NULL, left_out) &&
                 call_with_dir(&apart, open, user);
        if (called) {
            kn_text_put(opened.left_out, sizeof(opened.left_out), left_out);
        }
        kn_apart_deinit(&apart);
    }
    kn_mutex_unlock(&opened.lock);
    return called;
}
