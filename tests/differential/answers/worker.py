#!/usr/bin/env python3
"""worker.py: compiles with NVRTC or hipRTC, or links with nvJitLink, for its standard input, a request (JSON) a line, each in a child that has loaded
no compiler yet; under `kiln exec` or without. A request: library, prefix, steps. A step: text, name, headers, options,
expressions, env, cwd, rounding. The answer: for each step the codes, the texts and the digests of what was made."""
import ctypes
import ctypes.util
import hashlib
import json
import os
import sys

OUTPUTS = {"nvrtc": ("PTX", "CUBIN", "LTOIR", "OptiXIR"), "hiprtc": ("Code",)}
CODES = {"nearest": 0, "downward": 0x400, "upward": 0x800, "zero": 0xC00}
LIBM = ctypes.CDLL(ctypes.util.find_library("m"))


class Environment(ctypes.Structure):
    """x86-64's fenv_t, of which the last word is MXCSR."""
    _fields_ = [("words", ctypes.c_uint32 * 8)]


def set_rounding(name):
    if name == "flush":
        state = Environment()
        LIBM.fegetenv(ctypes.byref(state))
        state.words[7] |= 0x8040  # FTZ and DAZ
        LIBM.fesetenv(ctypes.byref(state))
    else:
        LIBM.fesetround(CODES[name or "nearest"])


def restore_rounding():
    LIBM.fesetenv(ctypes.c_void_p(-1))  # FE_DFL_ENV


def texts(items):
    return (ctypes.c_char_p * len(items))(*[item.encode() for item in items])


class Compiler:
    def __init__(self, path, prefix):
        self.library, self.prefix = ctypes.CDLL(path), prefix

    def call(self, name, *arguments):
        return getattr(self.library, self.prefix + name)(*arguments)

    def get(self, program, what, size_name=None):
        size = ctypes.c_size_t()
        if not hasattr(self.library, f"{self.prefix}Get{what}Size"):
            return None
        code = self.call(f"Get{what}Size", program, ctypes.byref(size))
        if code != 0:
            return code, b""
        data = ctypes.create_string_buffer(max(size.value, 1))
        return self.call(f"Get{what}", program, data), data.raw[:size.value]

    def compile(self, step):
        program = ctypes.c_void_p()
        headers = step.get("headers", {})
        code = self.call("CreateProgram", ctypes.byref(program), step["text"].encode(),
                         step["name"].encode() if step["name"] is not None else None,
                         len(headers), texts(list(headers.values())), texts(list(headers)))
        said = {"create": code}
        if code != 0:
            return said
        for expression in step.get("expressions", ()):
            said[f"add {expression}"] = self.call("AddNameExpression", program, expression.encode())
        set_rounding(step.get("rounding"))
        said["compile"] = self.call("CompileProgram", program, len(step["options"]), texts(step["options"]))
        restore_rounding()
        got = self.get(program, "ProgramLog")
        said["log"] = got[1].decode("utf-8", "replace")
        for what in OUTPUTS[self.prefix]:
            got = self.get(program, what)
            said[what] = got and [got[0], hashlib.sha256(got[1]).hexdigest(), len(got[1])]
            if step.get("whole") and got and what == "PTX":
                said["text"] = got[1].decode("utf-8", "replace")
        for expression in step.get("expressions", ()) if said["compile"] == 0 else ():
            lowered = ctypes.c_char_p()
            said[f"lowered {expression}"] = [self.call("GetLoweredName", program, expression.encode(), ctypes.byref(lowered)),
                                             (lowered.value or b"").decode()]
        self.call("DestroyProgram", ctypes.byref(program))
        return said


class Linker:
    """nvJitLink. A step has inputs: a type, a text and a name."""

    def __init__(self, path, _):
        self.library = ctypes.CDLL(path)

    def get(self, handle, what):
        size = ctypes.c_size_t()
        code = getattr(self.library, f"nvJitLinkGet{what}Size")(handle, ctypes.byref(size))
        if code != 0:
            return [code, ""]
        data = ctypes.create_string_buffer(max(size.value, 1))
        code = getattr(self.library, f"nvJitLinkGet{what}")(handle, data)
        return [code, hashlib.sha256(data.raw[:size.value]).hexdigest(), size.value]

    def compile(self, step):
        handle = ctypes.c_void_p()
        set_rounding(step.get("rounding"))
        said = {"create": self.library.nvJitLinkCreate(ctypes.byref(handle), ctypes.c_uint32(len(step["options"])), texts(step["options"]))}
        if said["create"] == 0:
            for kind, text, name in step["inputs"]:
                data = text.encode()
                said[f"add {name}"] = self.library.nvJitLinkAddData(handle, kind, data, ctypes.c_size_t(len(data)), name.encode())
            said["compile"] = self.library.nvJitLinkComplete(handle)
            for what in ("LinkedCubin", "LinkedPtx", "ErrorLog", "InfoLog"):
                said[what] = self.get(handle, what)
            self.library.nvJitLinkDestroy(ctypes.byref(handle))
        restore_rounding()
        return said


def change_environment(wanted, now):
    for name in now:
        if name not in wanted:
            del os.environ[name]
    os.environ.update(wanted)


def play(request):
    compiler, now, said = None, {}, []
    for step in request["steps"]:
        change_environment(step["env"], now)
        now = step["env"]
        os.chdir(step["cwd"])
        kind = Linker if request["prefix"] == "nvJitLink" else Compiler
        compiler = compiler or kind(request["library"], request["prefix"])
        said.append(compiler.compile(step))
    return said


def main():
    for line in sys.stdin:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            with os.fdopen(write, "w") as out:
                json.dump(play(json.loads(line)), out)
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as answer:
            said = answer.read()
        status = os.waitpid(child, 0)[1]
        print(said if status == 0 and said else json.dumps([{"died": status}]), flush=True)


main()
