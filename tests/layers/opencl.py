#!/usr/bin/env python3
"""opencl.py KILN LAYER CLIENT DRIVER: a program that knows nothing of kiln, by itself and under the OpenCL
layer: what it prints is the same, whatever the cache has or cannot do. DRIVER is a libOpenCL that
knows no layers."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KILN, LAYER, CLIENT, DRIVER = sys.argv[1:5]
SKIP = 77


class World:
    def __init__(self, root):
        self.root = Path(root)
        (self.root / "include").mkdir()
        self.header("#define OFFSET 5\n")

    def header(self, text):
        (self.root / "include" / "offset.h").write_text(text)

    def variables(self, pocl="pocl", **more):
        """PoCL finds what it compiled before, unless it is given a directory of its own."""
        driver = self.root / pocl
        driver.mkdir(exist_ok=True)
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("KILN_", "POCL_", "OPENCL_"))}
        return {**env, "POCL_CACHE_DIR": str(driver), "KILN_CACHE_DIR": str(self.root / "cache"),
                **more}

    def run(self, what, layer=True, program=(CLIENT,), **more):
        report = self.root / "report"
        report.write_text("")
        if layer:
            more = {"OPENCL_LAYERS": LAYER, "KILN_EXEC_REPORT": str(report), **more}
        done = subprocess.run([*program, what], env=self.variables(**more), cwd=self.root,
                              capture_output=True, text=True, errors="replace", timeout=200)
        if done.returncode == SKIP:
            print("no OpenCL device")
            sys.exit(SKIP)
        assert done.returncode == 0, (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
        rows = [line.split("\t") for line in report.read_text().splitlines()]
        self.binaries = [row[4] for row in rows if row[0] == "binary"]
        rows = [row for row in rows if row[0] not in ("core", "cache", "binary")]  # why kiln can do nothing
        self.left = sum((row[1] == "left") - (row[1] == "stored") for row in rows)
        rows = [row for row in rows if row[1] not in ("left", "stored")]
        assert all(row[0] == "opencl" for row in rows), rows
        return neutral(done.stdout), [row[1] for row in rows], [row[5] for row in rows]


    def warm(self, what):
        """The cache has what PoCL made: without the wish nothing is read that takes long."""
        self.run(what, pocl="warm", KILN_CAPTURE="1")
        assert self.left == 0, self.left


def neutral(text):
    """Without the names of temporary files that PoCL gives in a log."""
    return re.sub(r"/\S*tempfile_\w*", "tempfile", text)


def check_same(expected, got, when):
    if expected != got:
        title = ""
        for a, b in zip(expected.splitlines(), got.splitlines()):
            title = a if a.startswith("-- ") else title
            if a != b:
                print(f"{when}, {title}:\n- {a}\n+ {b}")
        raise AssertionError(when)


def all_calls_answer_as_the_driver(world):
    plain, _, _ = world.run("all", layer=False)
    hits = []
    for start, more in (("cold", {}), ("second", {}), ("captured", {"KILN_CAPTURE": "1"}), ("with an empty PoCL", {})):
        got, origins, reasons = world.run("all", pocl=start[-4:], **more)
        check_same(plain, got, start)
        assert world.binaries == [""], "the program loads a binary, and it is not pyopencl"
        assert "known options" in " ".join(reasons), reasons
        hits.append(origins.count("disk"))
    assert hits[:3] == [0, 0, 0] and hits[-1] >= 2, hits


def a_header_is_in_the_key(world):
    world.warm("build")
    _, origins, _ = world.run("build")
    assert "disk" in origins, origins
    world.header("#define OFFSET 7\n")
    plain, _, _ = world.run("build", layer=False)
    got, origins, _ = world.run("build")
    assert "disk" not in origins and "compiled" in origins, origins
    check_same(plain, got, "after an edit")
    world.header("#define OFFSET 5\n")
    _, origins, _ = world.run("build")
    assert "disk" in origins, origins


def what_cannot_be_used_is_not_there(world):
    plain, _, _ = world.run("build", layer=False)
    got, origins, _ = world.run("build", KILN_DISABLE="1")
    check_same(plain, got, "disabled")
    assert not origins, origins
    alone = world.root / "alone" / "opencl" / "1"
    alone.mkdir(parents=True)
    layer = shutil.copy(LAYER, alone)
    got, origins, _ = world.run("build", OPENCL_LAYERS=str(layer))
    check_same(plain, got, "without its core")
    assert not origins, origins
    file = world.root / "file"
    file.write_text("")
    for broken in (str(file), "/proc/nowhere"):
        got, _, _ = world.run("build", KILN_CACHE_DIR=broken)
        check_same(plain, got, f"with the cache {broken}")
    got, _, _ = world.run("build", KILN_READONLY="1", KILN_CACHE_DIR=str(world.root / "none"))
    check_same(plain, got, "with a cache that is only read")
    got, origins, _ = world.run("build", KILN_NO_CACHE="1")
    check_same(plain, got, "with a cache that is off")
    assert "disk" not in origins, origins
    got, _, _ = world.run("build", KILN_CACHE_MAX_SIZE="1KiB",
                          KILN_CACHE_DIR=str(world.root / "small"))
    check_same(plain, got, "with a cache that is full")


def starts_pay_nothing_unless_they_are_asked_to(world):
    """K13. PoCL compiles all kernels of a program whose binary is read, for any size: files that a run
    without kiln does not have, at the first start or a later one."""
    def shapes(pocl, **more):
        world.run("build", pocl=pocl, **more)
        return sorted(file.parent.name for file in (world.root / pocl).rglob("*.so"))

    plain = shapes("alone", layer=False)
    assert plain, "PoCL keeps what it has compiled"
    for name, more in (("off", {"KILN_NO_CACHE": "1"}), ("only-read", {"KILN_READONLY": "1"}),
                       ("first", {}), ("second", {}), ("third", {})):
        store = name if more else "cache"
        got = shapes(name, **more, KILN_CACHE_DIR=str(world.root / f"cache-{store}"))
        assert got == plain, (name, got, plain)
        assert (world.left > 0) == (not more), (name, world.left)
    got = shapes("captured", KILN_CAPTURE="1", KILN_CACHE_DIR=str(world.root / "cache-cache"))
    assert len(got) > len(plain), (got, plain)
    assert world.left == 0, world.left
    _, origins, _ = world.run("build", pocl="after", KILN_CACHE_DIR=str(world.root / "cache-cache"))
    assert "disk" in origins and "compiled" not in origins, origins


def entries_that_are_damaged_are_made_again(world):
    plain, _, _ = world.run("build", layer=False)
    world.warm("build")
    for file in (world.root / "cache").rglob("*.kiln"):
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 255
        file.write_bytes(data)
    got, _, _ = world.run("build")
    check_same(plain, got, "with damaged entries")


def processes_at_once(world):
    plain, _, _ = world.run("build", layer=False)
    cache = str(world.root / "many")
    starts = [subprocess.Popen([CLIENT, "build"], cwd=world.root, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               env=world.variables(OPENCL_LAYERS=LAYER, KILN_CACHE_DIR=cache))
              for _ in range(8)]
    starts[0].send_signal(signal.SIGKILL)
    time.sleep(0.3)
    starts[1].send_signal(signal.SIGKILL)  # perhaps with a lock
    for process in starts[2:]:
        out, _ = process.communicate(timeout=200)
        assert process.returncode == 0, process.returncode
        check_same(plain, neutral(out), "one of eight processes")
    for process in starts[:2]:
        process.communicate(timeout=100)


def several_devices(world):
    two = {"POCL_DEVICES": "basic pthread"}
    plain, _, _ = world.run("devices", layer=False, **two)
    if "devices 2" not in plain:
        print("this driver does not show two devices")
        return
    hits = []
    for more in ({"KILN_CAPTURE": "1"}, {}):
        got, origins, _ = world.run("devices", **two, **more)
        check_same(plain, got, "two devices")
        hits.append(origins.count("disk"))
    assert hits == [0, 1], hits


def what_is_left_is_read_at_exit(world):
    """PoCL's compiler is still whole then: a crash would show in the exit code."""
    plain, _, _ = world.run("left", layer=False)
    for start in range(3):
        got, origins, _ = world.run("left", pocl=f"pocl{start}", **({"KILN_CAPTURE": "1"} if start == 1 else {}))
        check_same(plain, got, "left to the exit")
        assert origins == ["disk" if start == 2 else "compiled"], origins
        assert (world.left > 0) == (start == 0), world.left


def what_was_never_launched_ends_nobody(world):
    """K6: PoCL compiles the other kernel when its binary is asked for, and aborts: its name is too long for a file."""
    plain, _, _ = world.run("long", layer=False)
    for start in range(5):
        got, origins, _ = world.run("long", pocl=f"own{start}", **({"KILN_CAPTURE": "1"} if start > 1 else {}))
        check_same(plain, got, f"with a long name, start {start}")
        assert origins == ["compiled"], origins


def a_read_that_ends_a_process_is_not_repeated(world):
    """A linker that works for what is launched, and then no longer: PoCL aborts the process."""
    folder = world.root / "bin"
    folder.mkdir()
    linker = folder / "ld"
    real = shutil.which("ld")
    linker.write_text("#!/bin/sh\n"
                      f'if [ -e "$POCL_CACHE_DIR/linked" ]; then echo asked >>{world.root}/asked; exit 1; fi\n'
                      f'touch "$POCL_CACHE_DIR/linked"\nexec {real} "$@"\n')
    linker.chmod(0o755)
    path = {"PATH": f"{folder}:{os.environ['PATH']}", "KILN_CAPTURE": "1"}
    plain, _, _ = world.run("two", layer=False, **path)
    codes = []
    for start in range(5):
        done = subprocess.run([CLIENT, "two"], cwd=world.root, capture_output=True, text=True, timeout=200, check=False,
                              env=world.variables(pocl=f"own{start}", OPENCL_LAYERS=LAYER, **path))
        codes.append(done.returncode)
        check_same(plain, neutral(done.stdout), f"with a bad linker, start {start}")
    asked = (world.root / "asked").read_text().splitlines() if (world.root / "asked").exists() else []
    assert len(asked) == 1 and sorted(codes) == [-signal.SIGABRT, 0, 0, 0, 0], (codes, asked)


def exec_sets_it(world):
    done = subprocess.run([KILN, "exec", "--print"], capture_output=True, text=True,
                          env=world.variables(OPENCL_LAYERS="/nowhere/own.so"), check=True)
    assert f"export OPENCL_LAYERS='/nowhere/own.so:{LAYER}'" in done.stdout, done.stdout
    out = world.root / "report.json"
    advice = "not stored: run `kiln exec --capture` once"
    for option, left, hits in (("--stats", True, False), ("--capture", False, False), ("--stats", False, True)):
        done = subprocess.run([KILN, "exec", option, "--stats", "--report", str(out), "--", CLIENT, "build"],
                              cwd=world.root, env=world.variables(), check=True, capture_output=True, text=True)
        found = json.loads(out.read_text())
        assert (found["not_stored"] > 0, found["hits"] > 0, found["failed"]) == (left, hits, 0), found
        assert (advice in done.stderr) == left, done.stderr
    done = subprocess.run([KILN, "doctor", "--json", "--", CLIENT, "build"], cwd=world.root,
                          env=world.variables(), check=True, capture_output=True, text=True)
    rows = [row for row in json.loads(done.stdout)["compilers"] if row["compiler"] == "OpenCL"]
    assert rows and all(row["answers"] == "kiln" for row in rows), rows


def a_loader_without_layers_is_told(world):
    """As the one of the CUDA toolkit: under kiln exec nothing happens, and doctor says why."""
    ask = "import ctypes; ctypes.CDLL('libOpenCL.so.1').clGetPlatformIDs(0, None, None)"
    command = [KILN, "doctor", "--json", "--", sys.executable, "-c", ask]
    env = world.variables(LD_LIBRARY_PATH=str(Path(DRIVER).parent))
    done = subprocess.run(command, cwd=world.root, env=env, check=True, capture_output=True, text=True)
    rows = [row for row in json.loads(done.stdout)["compilers"] if row["compiler"] == "OpenCL"]
    assert [row["path"] for row in rows] == [DRIVER], rows
    assert rows[0]["answers"] == "not kiln" and "no layer" in rows[0]["why"], rows
    assert "ocl-icd" in rows[0]["fix"], rows


def kilns_own_commands_take_no_layer(world):
    (world.root / "k.cl").write_text("__kernel void set(__global int *y) { y[0] = 7; }\n")
    out = world.root / "report.json"
    under = [KILN, "exec", "--report", str(out), "--"]
    command = [KILN, "run", "k.cl", "-b", "opencl", "-g", "1", "--arg", "out:i32:1"]
    subprocess.run([*under, *command], cwd=world.root, env=world.variables(), check=True,
                   capture_output=True)
    found = json.loads(out.read_text())
    assert found["hits"] + found["compiled"] + found["bypassed"] == 0, found
    subprocess.run([*under, KILN, "exec", "--", CLIENT, "build"], cwd=world.root, check=True,
                   env=world.variables(), capture_output=True)
    assert json.loads(out.read_text())["compiled"] > 0, "a program that it starts has the layer"


def a_list_is_cut_at_a_colon(world):
    libexec = world.root / "a:b"
    (libexec / "opencl" / "1").mkdir(parents=True)
    shutil.copy(LAYER, libexec / "opencl" / "1")
    (libexec / "libkiln-interpose.so").write_text("")
    env = world.variables(KILN_LIBEXEC=str(libexec))
    done = subprocess.run([KILN, "exec", "--", "sh", "-c", "echo layers=$OPENCL_LAYERS"], env=env,
                          capture_output=True, text=True, check=True)
    assert done.stdout == "layers=\n" and "without a blank or a colon" in done.stderr, done
    done = subprocess.run([KILN, "exec", "--print"], env=env, capture_output=True, text=True)
    assert done.returncode != 0 and not done.stdout, done


def a_full_disk_keeps_nothing(world):
    """A real one: a tmpfs with room for nothing, or for less than an entry."""
    script = """mount -t tmpfs -o size=$2 none "$1" && mkdir "$1/cache" && shift 2 && "$@" && "$@" && exec "$@" """
    full = world.root / "full"
    full.mkdir()
    under = ("unshare", "-m", "sh", "-c", script, "-", str(full))
    if subprocess.run([*under, "1m", "true"], capture_output=True).returncode != 0:
        print("no file system can be mounted here")
        return
    plain, _, _ = world.run("build", layer=False)
    for size in ("12k", "40k"):
        got, origins, _ = world.run("build", program=(*under, size, CLIENT),
                                    KILN_CACHE_DIR=str(full / "cache"))
        check_same(3 * plain, got, f"on a full disk of {size}")
        assert "disk" not in origins, origins


def main():
    for check in (all_calls_answer_as_the_driver, a_header_is_in_the_key,
                  what_cannot_be_used_is_not_there, starts_pay_nothing_unless_they_are_asked_to,
                  entries_that_are_damaged_are_made_again,
                  processes_at_once, several_devices, what_is_left_is_read_at_exit,
                  what_was_never_launched_ends_nobody, a_read_that_ends_a_process_is_not_repeated, exec_sets_it,
                  a_loader_without_layers_is_told, kilns_own_commands_take_no_layer, a_list_is_cut_at_a_colon,
                  a_full_disk_keeps_nothing):
        with tempfile.TemporaryDirectory() as root:
            start = time.monotonic()
            check(World(root))
            print(f"{check.__name__}: {time.monotonic() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
