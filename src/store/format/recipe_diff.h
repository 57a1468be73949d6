/* How two recipes differ, field by field, in words that people understand. */
#ifndef KILN_STORE_RECIPE_DIFF_H
#define KILN_STORE_RECIPE_DIFF_H

#include "kiln/unstable/explain.h"

#include "key/recipe.h"

/* A recipe's fields; they borrow from its text. */
typedef struct kn_recipe_lines {
    kn_recipe_field *fields;
    size_t count;
} kn_recipe_lines;

/* False when out of memory. */
bool kn_recipe_split(kn_span text, kn_recipe_lines *out_lines);
void kn_recipe_lines_deinit(kn_recipe_lines *lines);

/* The value of the only field of a name that counts here ("stage"); empty if there is none. */
kn_span kn_recipe_value(const kn_recipe_lines *lines, const char *name);

/* 0 for equal ones. What stands for most of a kernel (its source) weighs most. */
uint64_t kn_recipe_distance(const kn_recipe_lines *then, const kn_recipe_lines *now);

/* What a field is about, by its name. */
kiln_why kn_recipe_about(kn_span name);

/* The differences, and the first reason among them in the order of KILN_WHY_MAP. */
typedef struct kn_recipe_diff {
    kiln_difference *items;
    const kiln_difference **list; /* one an item: these may grow */
    size_t count;
    kiln_why why; /* KILN_WHY_HIT if there are none */
    char *texts;  /* what the items point into */
} kn_recipe_diff;

/* False when out of memory. */
bool kn_recipe_compare(const kn_recipe_lines *then, const kn_recipe_lines *now,
                       kn_recipe_diff *out_diff);
void kn_recipe_diff_deinit(kn_recipe_diff *diff);

#endif
