/* See options.h. What is wrong for a compiler is refused by it, and stores nothing. */
#include "differential/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/cmocka.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* What libnvrtc takes; it prints no list. */
static const char *const nvrtc_names[] = {"--time=",
                                          "--fdevice-time-trace=",
                                          "--create-pch=",
                                          "--use-pch=",
                                          "--pch-dir=",
                                          "--frandom-seed=",
                                          "--std=",
                                          "-std=",
                                          "--gpu-architecture=",
                                          "-arch=",
                                          "--define-macro=",
                                          "--undefine-macro=",
                                          "--include-path=",
                                          "--pre-include=",
                                          "-include=",
                                          "-include ",
                                          "--include-path ",
                                          "-I",
                                          "-I ",
                                          " -I",
                                          "-D",
                                          "-U",
                                          "--diag-error=",
                                          "--diag-warn=",
                                          "--diag-suppress=",
                                          "-Xcudafe --preinclude=",
                                          "-Xcudafe=--preinclude=",
                                          "-Xnvvm ",
                                          "-Xptxas ",
                                          "-Xptxas --options-file=",
                                          "-Xptxas=-optf=",
                                          "--ptxas-options=-v",
                                          "--dopt=on",
                                          "--Ofast-compile=max",
                                          "-Ofc=min",
                                          "--optimization-info=inline",
                                          "--no-cache",
                                          "--pch",
                                          "--modify-stack-limit=true",
                                          "--fdevice-syntax-only",
                                          "--builtin-move-forward=false",
                                          "--builtin-initializer-list=false",
                                          "-dc",
                                          "-dw",
                                          "-rdc=true",
                                          "--device-stack-protector=true",
                                          "-ewp",
                                          "-dlto",
                                          "-G",
                                          "-lineinfo",
                                          "--generate-line-info",
                                          "--discard-value-names=true",
                                          "--ftz=true",
                                          "--prec-sqrt=false",
                                          "--prec-div=false",
                                          "--fmad=false",
                                          "--minimal",
                                          "--uumn",
                                          "--extra-device-vectorization",
                                          "--use_fast_math",
                                          "--fassociative-math",
                                          "-w",
                                          "-restrict",
                                          "--version-ident=true",
                                          "-err-no",
                                          "--no-source-include",
                                          "-no-source-include",
                                          "--brief-diagnostics=true",
                                          "--maxrregcount=32",
                                          "-maxrregcount 32",
                                          "--split-compile=1",
                                          "-jtd=10",
                                          "--device-int128",
                                          "-default-device",
                                          "--options-file=",
                                          "-optf ",
                                          "@",
                                          "-isystem ",
                                          "-Xcudafe -I"};

/* OpenCL's own, and those of the clang inside PoCL. */
static const char *const opencl_names[] = {"-cl-single-precision-constant",
                                           "-cl-denorms-are-zero",
                                           "-cl-opt-disable",
                                           "-cl-mad-enable",
                                           "-cl-no-signed-zeros",
                                           "-cl-unsafe-math-optimizations",
                                           "-cl-finite-math-only",
                                           "-cl-fast-relaxed-math",
                                           "-cl-std=CL1.2",
                                           "-cl-std=CL3.0",
                                           "-cl-kernel-arg-info",
                                           "-w",
                                           "-Werror",
                                           "-g",
                                           "-O2",
                                           "-D",
                                           "-D ",
                                           "-U",
                                           "-I",
                                           "-I ",
                                           "-include ",
                                           "-isystem ",
                                           "-iquote ",
                                           "-idirafter ",
                                           "-imacros ",
                                           "-include-pch ",
                                           "-Xclang -include -Xclang ",
                                           "-ivfsoverlay ",
                                           "@",
                                           "--config ",
                                           "-DX=\"a -include ",
                                           "-x cl"};

/* Of clang's two thousand options, those that reach for files, and some that do not. */
static const char *const hiprtc_names[] = {"-I",
                                           "-I ",
                                           "-isystem ",
                                           "-iquote ",
                                           "-idirafter ",
                                           "-include ",
                                           "-include",
                                           "--include=",
                                           "-imacros ",
                                           "-Wp,-include,",
                                           "-Xclang -include -Xclang ",
                                           "-D ",
                                           "-U",
                                           "-O1",
                                           "-g",
                                           "-std=c++17",
                                           "-ffast-math",
                                           "-mcumode",
                                           "-Wall",
                                           "-nostdinc"};

static const char *const glsl_names[] = {"-O",       "-O0",
                                         "-Os",      "-g",
                                         "-w",       "-Werror",
                                         "-I",       "--target-env=vulkan1.2",
                                         "-std=450", "--target-spv=spv1.3",
                                         "-DSWITCH"};

/* What is tried often, whatever the list is. */
static const char *const c_usual[] = {"-O1",
                                      "-w",
                                      "-DSWITCH",
                                      "-DGIVEN=\"a.h\"",
                                      "-DGIVEN=<b.h>",
                                      "-include ",
                                      "-imacros ",
                                      "-isystem ",
                                      "-iquote ",
                                      "-idirafter ",
                                      "-I",
                                      "-std=gnu11",
                                      "-g",
                                      "-D ",
                                      "@",
                                      "-Wp,-include,",
                                      "-Xclang -include -Xclang ",
                                      "-include-pch ",
                                      "-nostdinc",
                                      "-ffast-math"};
static const char *const other_usual[] = {"-DSWITCH", "-DGIVEN=\"a.h\"", "-DGIVEN=<b.h>", "-w"};

static void add_name(option_names *out, const char *name)
{
    char **grown = realloc(out->names, (out->count + 1) * sizeof(*grown));
    assert_non_null(grown);
    out->names = grown;
    grown[out->count] = strdup(name);
    assert_non_null(grown[out->count++]);
}

static void read_help(option_names *out, const char *command)
{
    char line[1024];
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    while (fgets(line, sizeof(line), pipe) != NULL) {
        char *name = line + strspn(line, " ");
        name[strcspn(name, " \t\n<[,")] = '\0';
        if (name[0] == '-' && name[1] != '\0') {
            add_name(out, name);
        }
    }
    (void)pclose(pipe);
}

void option_names_read(option_names *out, const char *compiler)
{
    memset(out, 0, sizeof(*out));
    if (strcmp(compiler, "gcc") == 0) {
        read_help(out, "gcc --help=common --help=optimizers --help=warnings --help=target "
                       "--help=c 2>/dev/null; gcc -v --help 2>/dev/null");
    } else if (strcmp(compiler, "clang") == 0) {
        read_help(out, "clang --help 2>/dev/null; clang -cc1 --help 2>/dev/null");
    } else if (strcmp(compiler, "nvrtc") == 0) {
        for (size_t i = 0; i < COUNT(nvrtc_names); i++) {
            add_name(out, nvrtc_names[i]);
        }
    } else if (strcmp(compiler, "hiprtc") == 0) {
        for (size_t i = 0; i < COUNT(hiprtc_names); i++) {
            add_name(out, hiprtc_names[i]);
        }
    } else if (strcmp(compiler, "shaderc") == 0) {
        for (size_t i = 0; i < COUNT(glsl_names); i++) {
            add_name(out, glsl_names[i]);
        }
    } else {
        for (size_t i = 0; i < COUNT(opencl_names); i++) {
            add_name(out, opencl_names[i]);
        }
    }
    assert_true(out->count > 0);
}

void option_names_free(option_names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        free(names->names[i]);
    }
    free(names->names);
}

static void add_text(option_set *out, const char *text, size_t length)
{
    if (out->count < OPTIONS_MOST) {
        (void)snprintf(out->text[out->count], sizeof(out->text[0]), "%.*s", (int)length, text);
        out->list[out->count] = out->text[out->count];
        out->count++;
    }
}

/* A name that ends with "=", " " or a letter of its own wants a value. Blanks part elements, but
 * the first one. */
static void add_option(option_set *out, const char *name, const tree *t, tree_random *random)
{
    static const char *const values[] = {"1", "SWITCH", "GIVEN=\"b.h\"", "SWITCH=1"};
    const size_t length = strlen(name);
    const char last = name[length - 1];
    const bool macro = strncmp(name, "-D", 2) == 0 || strncmp(name, "-U", 2) == 0;
    const bool wants = strchr("= ,@IDU-", last) != NULL;
    char text[512];
    const char *value = "";
    if (wants) {
        value = macro ? values[tree_draw(random, COUNT(values))]
                : last == 'I' || strstr(name, "path") != NULL || strstr(name, "-i") == name
                    ? tree_draw(random, 2) == 0 ? t->any_file : t->dirs[0]
                : tree_draw(random, 5) == 0 ? values[0]
                                            : t->any_file;
    }
    (void)snprintf(text, sizeof(text), "%s%s", name, value);
    const char *at = text;
    while (*at != '\0') {
        const size_t part = strcspn(at + 1, " ") + 1;
        add_text(out, at, part);
        at += part + (at[part] == ' ');
    }
}

void option_set_draw(option_set *out, const char *compiler, const option_names *names,
                     const tree *t, tree_random *random)
{
    const bool c = strcmp(compiler, "gcc") == 0 || strcmp(compiler, "clang") == 0;
    memset(out, 0, sizeof(*out));
    for (uint32_t i = tree_draw(random, 4); i > 0; i--) {
        const char *name = names->names[tree_draw(random, (uint32_t)names->count)];
        if (tree_draw(random, 2) == 0 && strcmp(compiler, "shaderc") != 0) {
            name = c ? c_usual[tree_draw(random, COUNT(c_usual))]
                     : other_usual[tree_draw(random, COUNT(other_usual))];
        }
        add_option(out, name, t, random);
    }
}
