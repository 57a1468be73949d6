/* Configuration files: what is parsed, what is locked, whose files are read. */
#include "sys/config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "support/cmocka.h"
#include "support/tmpdir.h"
#include "sys/env.h"

static void parse_text(kn_config_file *file, const char *text, bool may_lock)
{
    memset(file, 0, sizeof *file);
    char *copy = kn_text_copy(text);
    assert_non_null(copy);
    kn_config_parse(copy, strlen(copy), may_lock, file);
}

static void lines_become_settings(void **state)
{
    kn_config_file file;
    parse_text(
        &file,
        "\n# comment\r\n  trust =  signed  \r\ncache_dir=/a b/c=d\npacks =\nlock remote = x\n"
        "cache_max_size = 1G\ncache_max_size = 2G",
        true);
    assert_string_equal(file.trouble, "");
    assert_string_equal(file.rows[KN_SETTING_TRUST].value, "signed");
    assert_int_equal(file.rows[KN_SETTING_TRUST].line, 3);
    assert_false(file.rows[KN_SETTING_TRUST].locked);
    assert_string_equal(file.rows[KN_SETTING_CACHE_DIR].value, "/a b/c=d");
    assert_string_equal(file.rows[KN_SETTING_PACKS].value, "");
    assert_string_equal(file.rows[KN_SETTING_REMOTE].value, "x");
    assert_true(file.rows[KN_SETTING_REMOTE].locked);
    assert_string_equal(file.rows[KN_SETTING_CACHE_MAX_SIZE].value, "2G");
    assert_null(file.rows[KN_SETTING_BACKEND].value);
    free(file.text);
}

static void what_is_not_understood_is_told(void **state)
{
    static const struct {
        const char *text, *trouble;
        bool may_lock;
    } rows[] = {
        {"nonsense", "line 1: it is not of the form", true},
        {"a = 1\nnonsense", "line 1: there is no setting \"a\"", true},
        {"ok\n", "line 1: it is not of the form", true},
        {"\n\ncache_dirr = /x",
         "line 3: there is no setting \"cache_dirr\" (did you mean cache_dir?)", true},
        {"lock trust = any", "only /etc/kiln.conf can lock", false},
        {"lock cache_dir = /x", "only trust, trusted_keys and remote", true},
        {"libexec = /x", "in the environment alone (KILN_LIBEXEC)", true},
        {"trust = a\033[1m", "control characters", true},
        {"lock = x", "there is no setting", true},
        {"= x", "there is no setting", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        kn_config_file file;
        parse_text(&file, rows[i].text, rows[i].may_lock);
        assert_non_null(strstr(file.trouble, rows[i].trouble));
        for (size_t k = 0; k < KN_SETTINGS; k++) {
            assert_null(file.rows[k].value);
        }
        free(file.text);
    }
}

/* Each setting of a file has a variable of the same name. */
static void every_setting_has_its_variable(void **state)
{
    for (size_t i = 0; i < KN_SETTINGS; i++) {
        const char *name = kn_setting_variable(i);
        assert_true(kn_text_starts(name, "KILN_"));
        for (size_t k = 0; k < i; k++) {
            assert_string_not_equal(kn_setting_variable(k), name);
        }
    }
    assert_null(kn_setting_variable(KN_SETTINGS));
}

static void read_file(kn_config_file *file, const char *path, bool system)
{
    memset(file, 0, sizeof *file);
    kn_text_put(file->path, sizeof file->path, path);
    kn_config_read(file, system);
}

static void strangers_files_are_refused(void **state)
{
    kn_config_file file;
    char *dir = kt_tmpdir_create(), *path = kt_at(dir, "kiln.conf");
    read_file(&file, path, true);
    assert_false(file.present);
    kt_file_write(path, "trust = any\n", 12);
    static const struct {
        mode_t mode;
        bool taken;
    } modes[] = {{0600, true}, {0644, true}, {0664, false}, {0646, false}, {0666, false}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(chmod(path, modes[i].mode), 0);
        read_file(&file, path, false);
        assert_true(file.present);
        assert_int_equal(file.rows[KN_SETTING_TRUST].value != NULL, modes[i].taken);
        assert_int_equal(file.trouble[0] == '\0', modes[i].taken);
        free(file.text);
        read_file(&file, path, true); /* root's alone */
        assert_int_equal(file.rows[KN_SETTING_TRUST].value != NULL,
                         modes[i].taken && geteuid() == 0);
        free(file.text);
    }
    if (geteuid() == 0) {
        assert_int_equal(chmod(path, 0644), 0);
        assert_int_equal(chown(path, 12345, 0), 0);
        for (int system = 0; system < 2; system++) {
            read_file(&file, path, system != 0);
            assert_non_null(strstr(file.trouble, "its owner is"));
            assert_null(file.text);
        }
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    read_file(&file, path, false);
    assert_true(file.present && file.trouble[0] != '\0' && file.text == NULL);
    assert_int_equal(rmdir(path), 0);
    char *large = calloc(1, KN_CONFIG_LIMIT + 1);
    assert_non_null(large);
    memset(large, '\n', KN_CONFIG_LIMIT + 1);
    kt_file_write(path, large, KN_CONFIG_LIMIT + 1);
    read_file(&file, path, false);
    assert_true(file.trouble[0] != '\0' && file.text == NULL);
    free(large);
    kt_tmpdir_remove(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_become_settings),
        cmocka_unit_test(what_is_not_understood_is_told),
        cmocka_unit_test(every_setting_has_its_variable),
        cmocka_unit_test(strangers_files_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
