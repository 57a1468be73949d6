/* A program against libkiln.dll and the public headers alone: a second get is a hit. */
#include <stdio.h>
#include <string.h>

#include <kiln/cache.h>
#include <kiln/cpu.h>
#include <kiln/cuda.h>
#include <kiln/kiln.h>
#include <kiln/opencl.h>
#include <kiln/unstable/opengl.h>
#include <kiln/vulkan.h>

static kiln_status compile(void *user, kiln_blob **out_blob, kiln_diag *diag)
{
    ++*(int *)user;
    return kiln_blob_create("bytes", 5, "", 0, out_blob, diag);
}

int main(void)
{
    kiln_cache_options options;
    kiln_cache *cache = NULL;
    kiln_recipe *recipe = NULL;
    kiln_diag diag = KILN_DIAG_INIT;
    int compiles = 0;
    bool good = kiln_cache_options_init(&options, &diag) == KILN_OK &&
                kiln_cache_create(&options, &cache, &diag) == KILN_OK &&
                kiln_recipe_create("program", 1, &recipe, &diag) == KILN_OK;
    if (good) {
        kiln_recipe_set_target(recipe, "windows");
    }
    for (int i = 0; good && i < 2; i++) {
        kiln_blob *blob = NULL;
        good = kiln_cache_get_or_compile(cache, recipe, compile, &compiles, &blob, NULL, &diag) ==
                   KILN_OK &&
               kiln_blob_size(blob) == 5 && memcmp(kiln_blob_data(blob), "bytes", 5) == 0;
        kiln_blob_release(blob);
    }
    if (!good) {
        char line[512];
        (void)kiln_diag_format(&diag, line, sizeof line);
        (void)printf("%s\n", line);
    }
    kiln_recipe_destroy(recipe);
    kiln_cache_destroy(cache);
    return good && compiles <= 1 ? 0 : 1; /* an earlier run's entry is as good */
}
