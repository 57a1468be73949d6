#!/usr/bin/env python3
"""children.py KILN REAL LIBEXEC: programs of every kind, started by `kiln exec` and by shells below it, with the fake NVRTC REAL
installed so that kiln preloads. Exit status, output and standard error are those of a start without kiln."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

KILN, REAL = sys.argv[1:3]
LIBEXEC = Path(sys.argv[3])
HELLO = '#include <stdio.h>\nint main(void) { printf("hello\\n"); return 5; }\n'
# Functions by which sanitizers ask a program for options, and the variable that has precedence, which is the user's.
OWN_OPTIONS = ["".join(f'const char *__{name}_default_options(void);\nconst char *__{name}_default_options(void) {{ return "{text}"; }}\n'
                       for name, text in rows) for rows in (
    [("asan", "detect_leaks=0")],
    [("asan", "detect_leaks=0"), ("lsan", "exitcode=3"), ("ubsan", "exitcode=3"), ("tsan", "exitcode=3")])]
READS_OPTIONS = ('#include <stdio.h>\n#include <stdlib.h>\nint main(void) { const char *options = getenv("ASAN_OPTIONS");\n'
                 'printf("%s\\n", options != NULL ? options : "unset"); return 5; }\n')
# Writes past an array: what AddressSanitizer is there for.
OVERFLOW = '#include <stdlib.h>\nint main(int c, char **v) { char *p = malloc(4); p[3 + c] = *v[0]; return p[0] == 1; }\n'
# Has no C library to include from: one for 32 bits is not installed.
BARE = ('long write(int, const void *, unsigned long);\nvoid _exit(int);\nvoid _start(void);\n'
        'void _start(void) { write(1, "hello\\n", 6); _exit(5); }\n')
CLIENT = ("import ctypes, sys\nnvrtc = ctypes.CDLL('libnvrtc.so.13')\nmajor, minor = ctypes.c_int(), ctypes.c_int()\n"
          "sys.exit(nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))\n")
LIBC_32 = ["/lib32/libc.so.6", "/usr/lib32/libc.so.6", "/lib/i386-linux-gnu/libc.so.6"]


class World:
    def __init__(self, root):
        self.root = Path(root)
        self.left_out = []
        self.env = {k: v for k, v in os.environ.items()
                    if not k.startswith(("KILN_", "NVRTC_", "CUDA", "LD_", "ASAN_"))}
        self.env.update(KILN_CACHE_DIR=str(self.root / "cache"), LD_LIBRARY_PATH=os.path.dirname(REAL))
        os.chmod(root, 0o755)

    def build(self, name, source, *command):
        """A program, or None where this machine cannot make or start it."""
        (self.root / f"{name}.c").write_text(source)
        program = str(self.root / name)
        done = subprocess.run([*command, f"{program}.c", "-o", program], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            self.left_out.append(f"{name}: {done.stderr.strip().splitlines()[-1]}")
            return None
        return program

    def start(self, command, **variables):
        done = subprocess.run(command, env={**self.env, **variables}, capture_output=True, timeout=120, check=False)
        return done.returncode, done.stdout, re.sub(rb"==\d+==", b"==process==", done.stderr)

    def compare(self, name, program, *arguments, expected=5, **variables):
        """By itself, and at the depths 1 to 3; `expected` is the program's status."""
        command = [program, *arguments]
        for depth in (1, 2, 3):
            alone = self.start(command, **variables)
            below = self.start([KILN, "exec", "--", *command], **variables)
            assert alone[0] == expected, (name, depth, alone)
            assert below == alone, f"{name} at depth {depth}: {below} instead of {alone}"
            quoted = " ".join("'" + word.replace("'", "'\\''") + "'" for word in command)
            command = ["sh", "-c", quoted + "; exit $?"]


def run_ordinary(world):
    world.compare("glibc", world.build("ordinary", HELLO, "cc"))
    static = world.build("static", HELLO, "cc", "-static")
    if static:
        world.compare("static", static)


def run_scripts(world):
    for interpreter in ("/bin/sh", "/usr/bin/env sh"):
        script = world.root / "script"
        script.write_text(f"#!{interpreter}\necho hello\nexit 5\n")
        script.chmod(0o755)
        world.compare(interpreter, str(script))


def run_musl(world):
    program = world.build("musl", HELLO, "musl-gcc") if have("musl-gcc") else None
    if program is None:
        world.left_out.append("musl: no musl-gcc (install musl-tools)")
        return
    world.compare("musl", program)


def have(command):
    return any(os.access(os.path.join(place, command), os.X_OK) for place in os.get_exec_path())


def run_32_bits(world):
    libc = [path for path in LIBC_32 if os.path.exists(path)]
    if os.uname().machine != "x86_64" or not libc:
        world.left_out.append("32 bits: no C library for i386 (install libc6-i386)")
        return
    program = world.build("narrow", BARE, "cc", "-m32", "-ffreestanding", "-fno-stack-protector", "-fno-pic", "-no-pie",
                          "-nostdlib", "-Wl,--dynamic-linker=/lib/ld-linux.so.2", "-Wl,--no-as-needed", libc[0])
    if program is None:
        return
    try:
        world.start([program])
    except OSError as error:
        world.left_out.append(f"32 bits: the kernel refuses: {error.strerror}")
        return
    world.compare("32 bits", program)
    for options in (["--audit"], ["--stats"]):
        status, out, err = world.start([KILN, "exec", *options, "--", "sh", "-c", program + "; exit $?"])
        assert (status, out) == (5, b"hello\n") and b"ld.so" not in err, (options, status, out, err)


def sanitizers():
    """How programs get a runtime: as a library, where it wants to come first, or linked into them."""
    gcc = [["-fsanitize=address"], ["-fsanitize=address", "-static-libasan"], ["-fsanitize=undefined"], ["-fsanitize=leak"],
           ["-fsanitize=thread"]]
    rows = [["cc", *options] for options in gcc]
    if have("clang"):
        runtime = subprocess.run(["clang", "-print-file-name=libclang_rt.asan-x86_64.so"], capture_output=True, text=True,
                                 check=True).stdout.strip()
        rows += [["clang", *options] for options in [*gcc[:1], *gcc[2:]]]
        if os.path.isabs(runtime):
            rows.append(["clang", "-fsanitize=address", "-shared-libasan", f"-Wl,-rpath,{os.path.dirname(runtime)}"])
    return rows


def run_sanitized(world):
    for number, command in enumerate(sanitizers()):
        for kind, own in enumerate(["", *OWN_OPTIONS]):
            program = world.build(f"sanitized{number}-{kind}", own + READS_OPTIONS, *command)
            if program is None or world.start([program])[0] != 5:
                world.left_out.append(f"{' '.join(command)}: does not run here")
                break
            world.compare(" ".join(command), program)
    program = world.build("sanitized", READS_OPTIONS, "cc", "-fsanitize=address")
    if program is None:
        return
    world.compare("AddressSanitizer with a variable", program, ASAN_OPTIONS="exitcode=9")
    status, _, report = world.start([KILN, "exec", "--", world.build("overflow", OVERFLOW, "cc", "-fsanitize=address")])
    assert status == 1 and b"heap-buffer-overflow" in report, report
    # As Python's extensions are tested.
    runtime = subprocess.run(["cc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True).stdout
    preloaded = {"LD_PRELOAD": os.path.realpath(runtime.strip()), "ASAN_OPTIONS": "detect_leaks=0"}
    world.compare("a preloaded AddressSanitizer", sys.executable, "-c", "print('hello'); raise SystemExit(5)", **preloaded)
    assert world.start([KILN, "exec", "--stats", "--", "true"], LD_PRELOAD=preloaded["LD_PRELOAD"])[0] == 0


def run_late_runtime(world):
    """A runtime that comes late by itself says so with kiln, too."""
    extension = world.build("extension.so", "int one;\nint *get(int i); int *get(int i) { return &one + i; }\n", "cc",
                            "-fsanitize=address", "-shared", "-fPIC")
    if extension:
        world.compare("a late runtime", sys.executable, "-c", f"import ctypes; ctypes.CDLL({extension!r})", expected=1)


def run_setuid(world):
    program = world.build("raised", HELLO, "cc")
    if os.getuid() != 0:
        world.left_out.append("setuid: only root can give a file to another user")
        return
    os.chown(program, 65534, 65534)
    os.chmod(program, 0o4755)
    world.compare("setuid", program)


def copy_libraries(world):
    """kiln's libraries as a wheel has them: without links."""
    copy = world.root / "libexec"
    if not copy.exists():
        for name in ("preload", "nvrtc"):
            shutil.copytree(LIBEXEC / name, copy / name)
        for file in LIBEXEC.glob("*.so"):
            (copy / file.name).symlink_to(file)
    return copy


def run_odd_place(world):
    """A list of libraries is cut at blanks, and a dollar begins a token of the loader's."""
    for place, says in (("odd place", b"LD_PRELOAD is cut there"), ("odd$place", b"")):
        (world.root / place).mkdir()
        for file in LIBEXEC.iterdir():
            (world.root / place / file.name).symlink_to(file)
        status, out, err = world.start([KILN, "exec", "--", "echo", "hello"], KILN_LIBEXEC=str(world.root / place))
        assert (status, out) == (0, b"hello\n") and (says in err if says else err == b""), (place, status, out, err)


def run_compilers(world):
    """What kiln is there for still reaches a child, below one whose C library is another."""
    script = "exec " + sys.executable + ' -c "$0"'
    status, _, err = world.start([KILN, "exec", "--", "sh", "-c", script, CLIENT])
    assert status == 0, err
    mapped = "print(''.join(sorted({l.split()[-1] for l in open('/proc/self/maps') if 'libnvrtc' in l})))"
    status, out, _ = world.start([KILN, "exec", "--", "sh", "-c", script, mapped])
    assert status == 0 and b"libnvrtc.so.13" in out, "kiln's library is not preloaded"
    for options in ([], ["--audit"]):
        variables = {"KILN_LIBEXEC": str(copy_libraries(world))}
        status, _, err = world.start([KILN, "exec", *options, "--", sys.executable, "-c", CLIENT], **variables)
        assert (status, err) == (0, b""), (options, status, err)
    nested = world.start([KILN, "exec", "--", KILN, "exec", "--", sys.executable, "-c", mapped])
    assert nested == (0, out, b""), nested


def main():
    with tempfile.TemporaryDirectory(prefix="kiln-children-") as root:
        world = World(root)
        for step in (run_ordinary, run_scripts, run_musl, run_32_bits, run_sanitized, run_late_runtime, run_setuid,
                     run_odd_place, run_compilers):
            step(world)
        for reason in world.left_out:
            print("left out:", reason)


main()
