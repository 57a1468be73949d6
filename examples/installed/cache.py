#!/usr/bin/env python3
"""Level 1 from Python, through ctypes: bytes in, bytes out, compiled once. The compile step here is
zlib; the second run says "disk"."""
import ctypes
import ctypes.util
import sys
import zlib

kiln = ctypes.CDLL(sys.argv[1] if len(sys.argv) > 1 else ctypes.util.find_library("kiln"))
COMPILE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p),
                           ctypes.c_void_p)
for name in ("kiln_origin_name", "kiln_status_name"):
    getattr(kiln, name).restype = ctypes.c_char_p
for name in ("kiln_blob_data", "kiln_blob_size"):
    getattr(kiln, name).restype = ctypes.c_size_t


def check(status):
    if status != 0:
        raise RuntimeError(kiln.kiln_status_name(status).decode())


class Cache:
    def __init__(self):
        self.cache = ctypes.c_void_p()
        check(kiln.kiln_cache_create(None, ctypes.byref(self.cache), None))

    def get_or_compile(self, stage, fields, compile_it):
        """The bytes for a recipe of `fields`, from the cache or from compile_it(); and their origin."""
        recipe, blob, origin = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
        check(kiln.kiln_recipe_create(stage.encode(), 1, ctypes.byref(recipe), None))

        @COMPILE
        def run(_user, out_blob, diag):
            made = compile_it()
            return kiln.kiln_blob_create(made, ctypes.c_size_t(len(made)), None, ctypes.c_size_t(0),
                                         out_blob, ctypes.c_void_p(diag))

        try:
            for name, value in fields:
                kiln.kiln_recipe_add_bytes(recipe, name.encode(), value, ctypes.c_size_t(len(value)))
            check(kiln.kiln_cache_get_or_compile(self.cache, recipe, run, None, ctypes.byref(blob),
                                                 ctypes.byref(origin), None))
            data = ctypes.string_at(kiln.kiln_blob_data(blob), kiln.kiln_blob_size(blob))
            return data, kiln.kiln_origin_name(origin).decode()
        finally:
            kiln.kiln_blob_release(blob)
            kiln.kiln_recipe_destroy(recipe)

    def close(self):
        kiln.kiln_cache_destroy(self.cache)


source = b"return x * 2;" * 100
cache = Cache()
code, where = cache.get_or_compile("example.zlib", [("source", source)],
                                   lambda: zlib.compress(source))
cache.close()
assert zlib.decompress(code) == source
print(f"{where}: {len(code)} bytes")
