/* Configuration files: settings that no variable of the environment holds.
 *
 *     # /etc/kiln.conf, and $XDG_CONFIG_HOME/kiln/kiln.conf or $KILN_CONFIG
 *     cache_max_size = 5G
 *     lock trust = signed
 *
 * A setting is called as its variable is, in small letters and without KILN_. The environment wins
 * over the user's file and that over /etc; what /etc locks (`lock` before the name; trust,
 * trusted_keys and remote) wins over all. A file that others than its owner may write, or that is
 * not root's or, for the user's, the user's, is refused. The files are read once in a process, when
 * the first setting is asked for: two calls of the system where there are none.
 *
 * The text is read in config_parse.c, the files in config.c. */
#ifndef KILN_SYS_CONFIG_H
#define KILN_SYS_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#define KN_CONFIG_SYSTEM "/etc/kiln.conf"
#define KN_CONFIG_LIMIT ((size_t)64 << 10)

enum {
#define X(name, place) KN_SETTING_##name,
#include "sys/settings.def"
#undef X
    KN_SETTINGS
};

/* "KILN_CACHE_DIR" for KN_SETTING_CACHE_DIR. */
const char *kn_setting_variable(size_t setting);

/* One row a setting: its value, NULL where the file has none. */
typedef struct kn_config_row {
    const char *value;
    unsigned line;
    bool locked;
} kn_config_row;

typedef struct kn_config_file {
    char path[512]; /* "": there is none to look for */
    bool present;
    char trouble[256]; /* why it was refused, or the first of its lines that was; "" */
    kn_config_row rows[KN_SETTINGS];
    char *text; /* that the values lie in; lasts */
} kn_config_file;

/* Parses `text`, which is changed and kept, and has a NUL at `length`. What it does not understand
 * is left out, and the first of it is in out_file->trouble. `may_lock`: the system's file. */
void kn_config_parse(char *text, size_t length, bool may_lock, kn_config_file *out_file);
/* Reads the file out_file->path. `system`: it must be root's. Blocks: disk. */
void kn_config_read(kn_config_file *file, bool system);

/* The file that holds the value of a variable of kiln's, and the row; NULL: none does.
 * Threads: any. Blocks: disk, the first time. */
const kn_config_file *kn_config_find(const char *variable, const kn_config_row **out_row);
/* The system's (0) and the user's (1); NULL for another. */
const kn_config_file *kn_config_get(size_t index);

#endif
