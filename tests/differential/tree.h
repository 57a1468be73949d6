/* Random trees of headers and a source that reaches into them: shadowing names, "..", links, names
 * that differ by case, computed includes, __has_include, #include_next, a precompiled header. */
#ifndef KILN_TESTS_DIFFERENTIAL_TREE_H
#define KILN_TESTS_DIFFERENTIAL_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tree_language { TREE_C, TREE_OPENCL, TREE_CUDA, TREE_GLSL } tree_language;

#define TREE_FILES 24
#define TREE_DIRS 4

typedef struct tree_file {
    char path[256]; /* real, absolute */
    char *text;
} tree_file;

typedef struct tree {
    char root[160]; /* real, absolute */
    tree_file files[TREE_FILES];
    size_t file_count;
    char dirs[TREE_DIRS][200]; /* include directories, in the order of the search */
    const char *dir_list[TREE_DIRS];
    size_t dir_count;
    char name[200]; /* of the source: in the tree's src, or without a directory */
    char source[4096];
    char any_file[256]; /* one of the headers, for options */
} tree;

/* The same numbers for the same seed, on every machine. */
typedef struct tree_random {
    uint64_t state;
} tree_random;
uint32_t tree_draw(tree_random *random, uint32_t below);

/* Writes a tree below `root`, which must not exist. Aborts the test on trouble. */
void tree_create(tree *t, const char *root, tree_language language, tree_random *random);
void tree_destroy(tree *t);

/* Replaces a file's content by that and a line that makes it differ; or by what it was. */
void tree_edit(const tree_file *file);
void tree_restore(const tree_file *file);

#endif
