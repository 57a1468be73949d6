/* Where configuration files lie, and whose they must be; see config.h. */
#include "sys/config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/text.h"
#include "sys/env.h"
#include "sys/file.h"

enum { SYSTEM, USER, FILES };

#define WRITABLE_BY_OTHERS 022u

static struct {
    pthread_once_t once;
    atomic_bool unsaid; /* there is trouble that is not in the log yet */
    kn_config_file files[FILES];
} config = {.once = PTHREAD_ONCE_INIT};

static const char *find_stranger(const kn_file_facts *facts, bool system)
{
    if (facts->owner != 0 && (system || facts->owner != (uint32_t)geteuid())) {
        return system ? "its owner is not root" : "its owner is another user";
    }
    return (facts->mode & WRITABLE_BY_OTHERS) != 0
               ? "others than its owner may write it (chmod go-w)"
               : NULL;
}

void kn_config_read(kn_config_file *file, bool system)
{
    void *data = NULL;
    size_t size = 0;
    kn_file_facts facts = {0};
    kiln_diag diag = KILN_DIAG_INIT;
    const kiln_status status =
        kn_file_read(file->path, KN_CONFIG_LIMIT, false, &data, &size, &facts, &diag);
    file->present = status != KILN_MISS;
    const char *why = status == KILN_OK ? find_stranger(&facts, system) : diag.why;
    if (status == KILN_OK && why == NULL) {
        kn_config_parse((char *)data, size, system, file);
    } else if (file->present) {
        kn_text_putf(file->trouble, sizeof file->trouble, "it is not used: %s", why);
        free(data);
    }
    kiln_diag_clear(&diag);
}

/* "" where there is no absolute one, and in a program that has another user's rights. */
static void find_user_file(char *path, size_t size)
{
    const char *own = kn_env_shell("KILN_CONFIG");
    const char *dir = kn_env_shell("XDG_CONFIG_HOME");
    const char *home = kn_env_shell("HOME");
    if (own != NULL) {
        kn_text_put(path, size, own[0] == '/' ? own : "");
    } else if (dir != NULL && dir[0] == '/') {
        kn_text_putf(path, size, "%s/kiln/kiln.conf", dir);
    } else if (home != NULL && home[0] == '/') {
        kn_text_putf(path, size, "%s/.config/kiln/kiln.conf", home);
    }
}

static void read_files(void)
{
    kn_text_put(config.files[SYSTEM].path, sizeof config.files[SYSTEM].path, KN_CONFIG_SYSTEM);
    find_user_file(config.files[USER].path, sizeof config.files[USER].path);
    kn_config_read(&config.files[SYSTEM], true);
    if (config.files[USER].path[0] != '\0') {
        kn_config_read(&config.files[USER], false);
    }
    atomic_store(&config.unsaid,
                 config.files[SYSTEM].trouble[0] != '\0' || config.files[USER].trouble[0] != '\0');
}

/* What hears the log may ask for a setting, so nothing is logged while the files are read. */
static void use_files(void)
{
    (void)pthread_once(&config.once, read_files);
    if (atomic_load_explicit(&config.unsaid, memory_order_relaxed) &&
        atomic_exchange(&config.unsaid, false)) {
        for (size_t i = 0; i < FILES; i++) {
            if (config.files[i].trouble[0] != '\0') {
                kn_log(KILN_LOG_WARN, "%s: %s", config.files[i].path, config.files[i].trouble);
            }
        }
    }
}

const kn_config_file *kn_config_get(size_t index)
{
    use_files();
    return index < FILES ? &config.files[index] : NULL;
}

const kn_config_file *kn_config_find(const char *variable, const kn_config_row **out_row)
{
    size_t setting = 0;
    use_files();
    if (config.files[SYSTEM].text == NULL && config.files[USER].text == NULL) {
        return NULL;
    }
    while (setting < KN_SETTINGS && strcmp(kn_setting_variable(setting), variable) != 0) {
        setting++;
    }
    if (setting == KN_SETTINGS) {
        return NULL;
    }
    const kn_config_row *system = &config.files[SYSTEM].rows[setting];
    const kn_config_row *user = &config.files[USER].rows[setting];
    const bool is_users = user->value != NULL && !system->locked;
    *out_row = is_users ? user : system;
    return (*out_row)->value != NULL ? &config.files[is_users ? USER : SYSTEM] : NULL;
}
