#!/usr/bin/env python3
"""header_example.py SOURCE LIBKILN: the examples at the head of kiln/cache.h compile without a warning, and do what the
comment says: compiled once, found then."""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE, LIBRARY = Path(sys.argv[1]), Path(sys.argv[2])
PROGRAM = """#include <stdio.h>
#include <string.h>
#include <kiln/cache.h>
static kiln_status compile(void *user, kiln_blob **out_blob, kiln_diag *diag)
{
    puts("compiled");
    return kiln_blob_create(user, strlen(user), NULL, 0, out_blob, diag);
}
static void use(const void *data, size_t size)
{
    printf("%.*s\\n", (int)size, (const char *)data);
}
static void run(kiln_cache *cache, const char *text, size_t length, const char *version, void *user)
{
    kiln_diag diag = KILN_DIAG_INIT;
EXAMPLE
    kiln_diag_clear(&diag);
}
int main(void)
{
    char result[] = "a result";
    kiln_cache *cache = NULL;
    if (kiln_cache_create(NULL, &cache, NULL) != KILN_OK) {
        return 1;
    }
    run(cache, "void main() {}", 14, "1.0", result);
    run(cache, "void main() {}", 14, "1.0", result);
    kiln_cache_destroy(cache);
    return 0;
}
"""


def main():
    head = (SOURCE / "include/kiln/cache.h").read_text().partition("*/")[0]
    example = "\n".join(re.findall(r"^ \*    ( .*)$", head, re.M))
    assert "kiln_cache_compile" in example and "kiln_cache_get_or_compile" in example, head
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["cc", "-std=c17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I", SOURCE / "include", "-x", "c", "-",
                        "-x", "none", LIBRARY, "-o", f"{folder}/example"], input=PROGRAM.replace("EXAMPLE", example),
                       text=True, check=True, timeout=100)
        env = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
        env.update(KILN_CACHE_DIR=f"{folder}/cache", LD_LIBRARY_PATH=str(LIBRARY.parent))
        fresh = "compiled\na result\n" * 2  # two recipes
        for wanted in (fresh + "a result\n" * 2, "a result\n" * 4):
            done = subprocess.run([f"{folder}/example"], env=env, capture_output=True, text=True, timeout=100)
            assert (done.returncode, done.stdout) == (0, wanted), done


main()
