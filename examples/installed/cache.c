/* Level 1: a program that has a compile step of its own and never wants to do it twice. The second
 * run says "disk"; with KILN_PACKS=/path/to.kpack it says "pack". */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kiln/cache.h>

/* Stands for the slow part: it makes everything upper case. */
static kiln_status compile(void *user, kiln_blob **out_blob, kiln_diag *diag)
{
    const char *source = user;
    const size_t length = strlen(source);
    char *result = malloc(length + 1);
    if (result == NULL) {
        return kiln_diag_set(diag, KILN_E_NOMEM, NULL, "compiling", NULL);
    }
    for (size_t i = 0; i < length; i++) {
        result[i] = (char)toupper((unsigned char)source[i]);
    }
    kiln_status status = kiln_blob_create(result, length, NULL, 0, out_blob, diag);
    free(result);
    return status;
}

int main(int argc, char **argv)
{
    char source[] = "return x * 2;";
    const char *compiler = "upper 1.0";
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_cache *cache = NULL;
    kiln_recipe *recipe = NULL;
    kiln_blob *blob = NULL;
    kiln_origin origin = KILN_ORIGIN_NONE;

    kiln_status status = kiln_cache_create(NULL, &cache, &diag);
    if (status == KILN_OK) {
        /* Everything that decides the output, and nothing else: no paths, no times. */
        status = kiln_recipe_create("example.upper", 1, &recipe, &diag);
    }
    if (status == KILN_OK) {
        kiln_recipe_add_text(recipe, "source", source, strlen(source));
        kiln_recipe_add_text(recipe, "compiler", compiler, strlen(compiler));
        if (argc > 1) {
            kiln_recipe_add_text(recipe, "option", argv[1], strlen(argv[1]));
        }
        status = kiln_cache_get_or_compile(cache, recipe, compile, source, &blob, &origin, &diag);
    }
    if (status == KILN_OK) {
        printf("%s: %.*s\n", kiln_origin_name(origin), (int)kiln_blob_size(blob),
               (const char *)kiln_blob_data(blob));
    } else {
        char line[1024];
        (void)kiln_diag_format(&diag, line, sizeof line);
        fprintf(stderr, "%s\n", line);
    }
    kiln_blob_release(blob);
    kiln_recipe_destroy(recipe);
    kiln_cache_destroy(cache);
    kiln_diag_clear(&diag);
    return status == KILN_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
