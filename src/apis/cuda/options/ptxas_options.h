/* A command line of ptxas, as far as kiln follows it: a closed list of options, one input, one
 * output. This file opens nothing. */
#ifndef KILN_CUDA_OPTIONS_PTXAS_OPTIONS_H
#define KILN_CUDA_OPTIONS_PTXAS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct kn_ptxas_line {
    int input_at;       /* index of the input's name */
    int output_at;      /* index of the argument that ends in the output's name; 0: none is given */
    size_t output_skip; /* bytes of that argument before the name: "--output-file=" */
    const char *output; /* "elf.o" where none is given */
    bool asks_version;  /* --version, and nothing else */
    bool no_lines;      /* the output has no table of source lines */
    char target[64];    /* where the entry is kept: "cuda-sm_90" */
    char bypass[128];   /* why the line cannot be followed; "" if it can */
} kn_ptxas_line;

/* Reads argv[1] to argv[argc - 1]. The names are those of `argv`. */
void kn_ptxas_line_read(int argc, char *const *argv, kn_ptxas_line *out_line);

/* Why a list of options that another compiler hands on ("-O1,--def-load-cache=ca") bypasses the
 * cache, static; NULL if it need not. */
const char *kn_ptxas_list_reason(const char *list);

#endif
