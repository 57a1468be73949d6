"""fake_calls.py: what a program asks of NVRTC, for the fake one of the tests: a text, a header, an encrypted source as
cuDNN's, a compile that fails. Under kiln it does as $SAME_PATH_CHEAT says, so that a difference is seen to be one."""
import ctypes
import hashlib
import json
import os
import sys

text, word = ctypes.c_char_p, ctypes.c_void_p
CHEAT = os.environ.get("SAME_PATH_CHEAT", "") if "KILN_NVRTC_13" in os.environ else ""
NVRTC = ctypes.CDLL("libnvrtc.so.13")
digest = hashlib.sha256()


def finish(program, *options):
    code = NVRTC.nvrtcCompileProgram(program, len(options), (text * max(1, len(options)))(*options))
    size = ctypes.c_size_t()
    for what in ("ProgramLog", "PTX", "CUBIN") if code == 0 else ("ProgramLog",):
        assert getattr(NVRTC, f"nvrtcGet{what}Size")(program, ctypes.byref(size)) == 0
        room = ctypes.create_string_buffer(size.value + 1)
        assert getattr(NVRTC, f"nvrtcGet{what}")(program, room) == 0
        digest.update(room.raw)
    assert NVRTC.nvrtcDestroyProgram(ctypes.byref(program)) == 0
    return code


def plain(source, *options, headers=()):
    program = word()
    texts, names = [(text * max(1, len(headers)))(*column) for column in (list(zip(*headers)) or [(), ()])]
    assert NVRTC.nvrtcCreateProgram(ctypes.byref(program), source, b"plain.cu", len(headers), names, texts) == 0
    return finish(program, *options)


def encrypted(source, *options):
    program, call = word(), getattr(NVRTC, "__nvrtcCPEx")
    call.argtypes = [word, text, text, ctypes.c_int, word, word, ctypes.c_int, word, word]
    code = call(ctypes.byref(program), bytes(byte + 1 for byte in source), b"encrypted.cu", 1,
                ctypes.byref(text(b"#define KEY 7\n")), ctypes.byref(text(b"key.h")), 2, (ctypes.c_int * 2)(1, 2),
                (ctypes.c_uint64 * 2)(0x123456789abcdef0, 0xfedcba9876543210))
    return code if code != 0 else finish(program, *options)


codes = [plain(b"__global__ void k(int *a) { *a = 1; }", b"-arch=sm_90"),
         plain(b'#include "v.h"\n__global__ void l(int *a) { *a = V; }', b"-arch=sm_90", headers=((b"v.h", b"#define V 3\n"),)),
         plain(b"__global__ void m(int *a) { *a = nothing; }")]
if CHEAT != "skips":
    codes.append(encrypted(b"__global__ void e(int *a) { *a = 4; }", b"-DX" if CHEAT == "options" else b"-DY"))
if CHEAT == "warns":
    print("a warning", file=sys.stderr)
if CHEAT == "result":
    digest.update(b"x")
print(json.dumps({"codes": codes, "digest": digest.hexdigest()[:16]}))
sys.exit(int(os.environ.get("SAME_PATH_STATUS", "0")) + (CHEAT == "fails"))
