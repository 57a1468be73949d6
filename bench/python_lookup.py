#!/usr/bin/env python3
"""python_lookup.py BUILD [ROUNDS]: what a lookup in memory costs from Python, over the same call in C.

The C program below and kiln.Cache look the same entry up, in turns; medians of the rounds. With python3-cffi the bare call
through ctypes and through cffi (ABI mode) is measured as well (docs/decisions/0016)."""
import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COUNT = 20_000

C = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <kiln/cache.h>
int main(int argc, char **argv)
{
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_cache_options options = {0};
    kiln_cache *cache;
    kiln_recipe *recipe;
    kiln_blob *blob;
    struct timespec from, to;
    long count = atol(argv[2]);
    if (argc != 3 || kiln_cache_options_init(&options, &diag) != KILN_OK) { return 1; }
    options.root = argv[1];
    if (kiln_cache_create(&options, &cache, &diag) != KILN_OK ||
        kiln_recipe_create("bench.python", 1, &recipe, &diag) != KILN_OK) { return 1; }
    kiln_recipe_add_text(recipe, "source", "text", 4);
    kiln_key key = kiln_recipe_key(recipe);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    for (long i = 0; i < count; i++) {
        if (kiln_cache_get(cache, &key, &blob, NULL, &diag) != KILN_OK) { return 1; }
        kiln_blob_release(blob);
    }
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    printf("%.3f\n", ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / 1e3 / (double)count);
    return 0;
}
"""


def timed(call):
    start = time.process_time_ns()
    for _ in range(COUNT):
        call()
    return (time.process_time_ns() - start) / 1e3 / COUNT


def bare_ctypes(library, cache, key):
    out, origin = ctypes.c_void_p(), ctypes.c_int()
    library.kiln_cache_get.argtypes = [ctypes.c_void_p] * 5
    library.kiln_blob_release.argtypes = [ctypes.c_void_p]
    arguments = ctypes.addressof(key), ctypes.addressof(out), ctypes.addressof(origin)

    def call():
        library.kiln_cache_get(cache, *arguments, None)
        library.kiln_blob_release(out)

    return call


def bare_cffi(path, cache, key):
    try:
        import cffi
    except ImportError:
        return None
    ffi = cffi.FFI()
    ffi.cdef("int kiln_cache_get(void *, void *, void **, int *, void *); void kiln_blob_release(void *);")
    library = ffi.dlopen(path)
    out, origin = ffi.new("void **"), ffi.new("int *")
    pointer, place = ffi.cast("void *", cache), ffi.cast("void *", ctypes.addressof(key))

    def call():
        library.kiln_cache_get(pointer, place, out, origin, ffi.NULL)
        library.kiln_blob_release(out[0])

    return call


def main():
    build, rounds = Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 7
    if "KILN_BENCH_AGAIN" not in os.environ:  # the loader reads its path at the start
        os.environ.update(LD_LIBRARY_PATH=str(build / "src"), PYTHONPATH=str(ROOT / "python"), KILN_BENCH_AGAIN="1")
        os.execv(sys.executable, [sys.executable, *sys.argv])
    import kiln

    with tempfile.TemporaryDirectory() as place, kiln.Cache(f"{place}/cache") as cache:
        program = Path(place) / "lookup"
        program.with_suffix(".c").write_text(C)
        subprocess.run(["cc", "-O2", f"-I{ROOT}/include", f"{program}.c", "-o", program, f"-L{build}/src", "-lkiln"], check=True)
        recipe = kiln.Recipe("bench.python", 1, source="text")
        cache.put(recipe, b"x" * 10_000)
        key = recipe.key
        with cache._handle as pointer:
            path = str(build / "src/libkiln.so.0")
            calls = {
                "Cache.get(key)": lambda: cache.get(key),
                "Cache.get(recipe).data": lambda: cache.get(recipe).data,
                "Recipe(...), then get": lambda: cache.get(kiln.Recipe("bench.python", 1, source="text")),
                "get_or_compile(recipe)": lambda: cache.get_or_compile(recipe, None),
                "ctypes, the bare call": bare_ctypes(ctypes.CDLL(path), pointer, key._struct),
                "cffi, the bare call": bare_cffi(path, pointer, key._struct),
            }
            times = {"C": []}
            for _ in range(rounds):
                said = subprocess.run([program, cache.root, str(COUNT)], check=True, capture_output=True, text=True)
                times["C"].append(float(said.stdout))
                for name, call in calls.items():
                    if call is not None:
                        times.setdefault(name, []).append(timed(call))
    base = statistics.median(times["C"])
    print(f"a lookup in memory, microseconds of processor time, medians of {rounds} rounds of {COUNT:,}")
    for name, each in times.items():
        print(f"{name:26} {statistics.median(each):8.2f}   over C {statistics.median(each) - base:8.2f}")


if __name__ == "__main__":
    main()
