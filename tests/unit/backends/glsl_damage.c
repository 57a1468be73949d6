/* See glsl_damage.h. */
#include "unit/backends/glsl_damage.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "support/cmocka.h"
#include "support/counters.h"
#include "support/tmpdir.h"
#include "unit/backends/glsl_rig.h"

/* Every entry below `root` whose path names the target; the visitor damages it. */
static size_t each_entry(const char *root, const char *target, void (*visit)(const char *path))
{
    size_t count = 0;
    DIR *dir = opendir(root);
    struct dirent *row = NULL;
    while (dir != NULL && (row = readdir(dir)) != NULL) {
        struct stat facts;
        if (row->d_name[0] == '.') {
            continue;
        }
        char *path = kt_path(root, row->d_name);
        if (lstat(path, &facts) == 0 && S_ISDIR(facts.st_mode)) {
            count += each_entry(path, target, visit);
        } else if (strstr(path, target) != NULL && strstr(path, ".kiln") != NULL) {
            visit(path);
            count++;
        }
        free(path);
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return count;
}

static unsigned int round_number;

static void damage(const char *path)
{
    size_t size = 0;
    char *bytes = kt_file_read(path, &size);
    assert_non_null(bytes);
    assert_true(size > 64);
    if (round_number % 2 == 0) {
        bytes[(size_t)round_number * 37 % size] ^= (char)(1 << round_number % 8);
    } else {
        size = size * round_number / 24;
    }
    kt_file_write(path, bytes, size);
    free(bytes);
}

void glsl_damaged_entries_are_made_again(const char *backend, const char *target)
{
    char *dir = kt_tmpdir_create();
    glsl_rig rig;
    kt_counters stats;
    glsl_open(&rig, backend, dir);
    kiln_program *program = glsl_build(&rig, glsl_increment);
    glsl_run(&rig, program, 16);
    kiln_program_release(program);
    glsl_close(&rig);
    for (round_number = 0; round_number < 24; round_number++) {
        assert_true(each_entry(dir, target, damage) > 0);
        glsl_open(&rig, backend, dir);
        program = glsl_build(&rig, glsl_increment);
        kt_counters_own(rig.cache, &stats);
        assert_true(kiln_program_info(program)->compiles > 0);
        assert_true(stats.corrupt > 0);
        assert_int_equal(stats.rejected, 0); /* the driver never saw it */
        glsl_run(&rig, program, 16);
        kiln_program_release(program);
        glsl_close(&rig);
    }
    glsl_open(&rig, backend, dir);
    program = glsl_build(&rig, glsl_increment);
    assert_int_equal(kiln_program_info(program)->compiles, 0);
    glsl_run(&rig, program, 16);
    kiln_program_release(program);
    glsl_close(&rig);
    kt_tmpdir_remove(dir);
}
