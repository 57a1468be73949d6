#!/usr/bin/env python3
"""host.py KILN REAL: what a program finds in its own process after it has compiled under `kiln exec` with the fake NVRTC
REAL: its threads, its descriptors and its files. What it prints is what it prints without kiln."""
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

KILN, REAL = (os.path.abspath(path) for path in sys.argv[1:3])
# A program with one function for each scene; `compile` gives NVRTC's result.
PROGRAM = r"""
import ctypes, os, resource, struct, sys

nvrtc = ctypes.CDLL("libnvrtc.so.13")
libc = ctypes.CDLL(None, use_errno=True)


def compile(number):
    program = ctypes.c_void_p()
    text = b"__global__ void k(int *a) { *a = %d; }" % number
    options = (ctypes.c_char_p * 1)(b"--gpu-architecture=sm_90")
    code = nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"k.cu", 0, None, None)
    return code or nvrtc.nvrtcCompileProgram(program, 1, options)


def threads():
    return len(os.listdir("/proc/self/task"))


def one_thread():
    print(threads(), compile(1), threads(), compile(2), threads())
    print(libc.unshare(0x10000000), ctypes.get_errno())  # CLONE_NEWUSER


def use_up(free):
    "Leaves so many descriptors free."
    highest = os.open("/", os.O_RDONLY)
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 40, highest + 40))
    used = []
    try:
        while True:
            used.append(os.dup(0))
    except OSError:
        pass
    for file in used[:free]:
        os.close(file)


def one_descriptor():
    use_up(1)
    print(compile(1), compile(1), compile(2))


def none_after_a_hit():
    print(compile(1))
    use_up(0)
    print(compile(1), compile(3))


def closed_descriptors():
    print(compile(1))
    os.closerange(3, 64)
    files = [os.open(f"own{n}", os.O_RDWR | os.O_CREAT, 0o600) for n in range(24)]
    for n, file in enumerate(files):
        os.write(file, b"own %d\n" % n)
    print(compile(1), compile(4), compile(5))
    pid = os.fork()
    for n, file in enumerate(files):
        facts, named = os.fstat(file), os.stat(f"own{n}")
        assert (facts.st_dev, facts.st_ino) == (named.st_dev, named.st_ino), n
        assert os.pread(file, 100, 0) == b"own %d\n" % n, (n, os.pread(file, 100, 0))
    if pid == 0:
        os._exit(0)
    print(os.waitpid(pid, 0)[1], compile(6))


def refuse(*calls):
    "A sandbox that answers these system calls with EPERM, as an old container runtime does to a new one (seccomp(2))."
    load, equal, give, allow, refused = 0x20, 0x15, 0x06, 0x7fff0000, 0x00050001
    rows = [(load, 0, 0, 0)]
    for call in calls:
        rows += [(equal, 0, 1, call), (give, 0, 0, refused)]
    rows.append((give, 0, 0, allow))
    code = b"".join(struct.pack("HBBI", *row) for row in rows)
    text = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("HxxxxxxP", len(rows), ctypes.addressof(text))
    assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program, 0, 0) == 0


CALLS = {"x86_64": {"readlink": [89, 267], "faccessat2": [439], "sigprocmask": [14]},
         "aarch64": {"readlink": [78], "faccessat2": [439], "sigprocmask": [135]}}


def refused():
    refuse(*CALLS[os.uname().machine][sys.argv[2]])
    print(compile(1), compile(1), compile(2))


globals()[sys.argv[1]]()
"""
# Threads that are cancelled where a compiler is asked for its result: under kiln, before the result is stored.
CANCELLED = r"""
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static int (*create)(void **, const char *, const char *, int, const char *const *, const char *const *);
static int (*compile)(void *, int, const char *const *);
static int (*get)(void *, char *);
static char cubin[1 << 20];
static int make(int number)
{
    static const char *const options[] = {"--gpu-architecture=sm_90"};
    char text[100];
    void *program = NULL;
    snprintf(text, sizeof text, "__global__ void k(int *a) { *a = %d; }", number);
    const int code = create(&program, text, "k.cu", 0, NULL, NULL);
    return code != 0 ? code : compile(program, 1, options) != 0 || get(program, cubin) != 0;
}
static void *run(void *user)
{
    make(*(int *)user);
    pthread_testcancel();
    return NULL;
}
int main(void)
{
    void *library = dlopen("libnvrtc.so.13", RTLD_NOW);
    void *symbols[] = {dlsym(library, "nvrtcCreateProgram"), dlsym(library, "nvrtcCompileProgram"),
                       dlsym(library, "nvrtcGetCUBIN")};
    memcpy(&create, &symbols[0], sizeof create);
    memcpy(&compile, &symbols[1], sizeof compile);
    memcpy(&get, &symbols[2], sizeof get);
    alarm(50); /* a lock that stays held would last longer */
    setenv("FAKENVRTC_CANCELS", "1", 1);
    for (int number = 1; number <= 3; number++) {
        pthread_t thread;
        void *result = NULL;
        pthread_create(&thread, NULL, run, &number);
        pthread_join(thread, &result);
        printf("%d ", result == PTHREAD_CANCELED);
    }
    unsetenv("FAKENVRTC_CANCELS");
    printf("%d %d %d\n", make(1), make(2), make(4));
    return 0;
}
"""


class World:
    def __init__(self, root):
        self.root = Path(root)
        self.program = self.root / "program.py"
        self.program.write_text(PROGRAM)
        self.log = self.root / "compiles"
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("KILN_", "NVRTC_", "CUDA", "LD_"))}
        self.env.update(KILN_CACHE_DIR=str(self.root / "cache"), LD_LIBRARY_PATH=os.path.dirname(REAL),
                        FAKENVRTC_LOG=str(self.log))

    def run(self, scene, *before, **variables):
        return self.start([*before, sys.executable, str(self.program), *scene.split()], **variables)

    def start(self, command, preexec_fn=None, **variables):
        self.log.write_text("")
        done = subprocess.run(command, env={**self.env, **variables}, preexec_fn=preexec_fn,
                              cwd=self.root, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout, done.stderr

    def compiles(self):
        return len(self.log.read_text().splitlines())


def check_scene(scene, expected):
    """`expected` where the fake compiler starts processes, and the real one would need no descriptor."""
    with tempfile.TemporaryDirectory(prefix="kiln-host-") as root:
        world = World(root)
        alone = world.run(scene)
        assert alone[0] == 0, (scene, alone)
        for start in range(2):
            below = world.run(scene, KILN, "exec", "--stats", "--")
            assert below[:2] == (0, expected or alone[1]), f"{scene}, start {start}: {below} instead of {alone}"
        if scene == "closed_descriptors":
            assert "5 hits, 0 compiled" in below[2], below


def check_threads_in_a_compile():
    """A second thread costs a program without one time for the rest of its life: in the C library's locks and malloc."""
    with tempfile.TemporaryDirectory(prefix="kiln-host-") as root:
        world, seen = World(root), []
        for name, before in (("alone", []), ("below", [KILN, "exec", "--"])):
            file = world.root / name
            done = world.run("one_thread", *before, FAKENVRTC_THREADS=str(file))
            assert done[0] == 0, done
            seen.append(file.read_text().splitlines())
        assert seen[0] == seen[1] and len(seen[0]) == 2, seen


def check_refused_calls():
    if os.uname().machine not in ("x86_64", "aarch64"):
        print("left out: refused system calls: their numbers are not known here")
        return
    for call in ("readlink", "faccessat2", "sigprocmask"):
        check_scene(f"refused {call}", None)


def check_cancelled_threads():
    with tempfile.TemporaryDirectory(prefix="kiln-host-") as root:
        world = World(root)
        (world.root / "cancelled.c").write_text(CANCELLED)
        program = str(world.root / "cancelled")
        subprocess.run(["cc", "-pthread", f"{program}.c", "-o", program, "-ldl"], check=True)
        alone = world.start([program])
        below = world.start([KILN, "exec", "--", program])
        assert alone == below == (0, "1 1 1 0 0 0\n", ""), (alone, below)


def check_ignored_signals():
    """As below nohup(1), or in the background of a shell: `kiln exec --stats` waits for the program, and changes nothing."""
    ignored = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGCHLD)
    program = [sys.executable, "-c", "print([line for line in open('/proc/self/status') if line.startswith(('SigIgn', 'SigBlk'))]);"
               "raise SystemExit(5)"]

    def ignore():
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)

    with tempfile.TemporaryDirectory(prefix="kiln-host-") as root:
        world = World(root)
        for prepare in (None, ignore):
            alone = world.start(program, preexec_fn=prepare)
            for options in ([], ["--stats"], ["--report", str(world.root / "report")]):
                below = world.start([KILN, "exec", *options, "--", *program], preexec_fn=prepare)
                assert alone[0] == 5 and below[:2] == alone[:2], (options, alone, below)


def main():
    check_scene("one_thread", None)
    check_threads_in_a_compile()
    check_ignored_signals()
    check_refused_calls()
    check_cancelled_threads()
    table = "import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare(0x400) != 0)"  # CLONE_FILES
    if subprocess.run([sys.executable, "-c", table], check=False).returncode == 0:
        check_scene("one_descriptor", "0 0 0\n")
        check_scene("none_after_a_hit", "0\n0 0\n")
    else:
        print("left out: programs without descriptors: unshare(2) is refused here")
    check_scene("closed_descriptors", None)
    with tempfile.TemporaryDirectory(prefix="kiln-host-") as root:
        world = World(root)
        os.mkfifo(world.root / "pipe")
        below = world.run("one_thread", KILN, "exec", "--", KILN_EXEC_REPORT=str(world.root / "pipe"))
        assert below == world.run("one_thread"), below


main()
