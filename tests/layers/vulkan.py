#!/usr/bin/env python3
"""vulkan.py KILN LAYER CLIENT FAKEICD ASKING: programs that know nothing of kiln, by themselves and under
the Vulkan layer: what they print is the same, whatever the cache has or cannot do. The driver is
lavapipe, behind one whose pipeline caches hold something."""
import json
import os
import random
import resource
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KILN, LAYER, CLIENT, FAKE, ASKING = sys.argv[1:6]
NAME = "VK_LAYER_KILN_cache"
VALIDATION = "VK_LAYER_KHRONOS_validation"
LAVAPIPE = [path for folder in ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64")
            for path in Path(folder).glob("libvulkan_lvp.so")]
SKIP = 77
SHADER = """#version 450
layout(constant_id = 0) const uint offset = 1;
layout(binding = 0) buffer Data { uint data[]; };
void main() { data[gl_GlobalInvocationID.x] += offset; }
"""


class World:
    shader = b""

    def __init__(self, root):
        self.root = Path(root)
        self.code = self.root / "code.spv"
        if not World.shader:
            World.shader = self.compile()
        self.code.write_bytes(World.shader)
        driver = {"file_format_version": "1.0.0",
                  "ICD": {"library_path": FAKE, "api_version": "1.3.0"}}
        (self.root / "icd.json").write_text(json.dumps(driver))

    def compile(self):
        (self.root / "code.comp").write_text(SHADER)
        subprocess.run([KILN, "compile", "-t", "vulkan:spirv", "code.comp", "-o", self.code],
                       cwd=self.root, check=True, capture_output=True,
                       env={**os.environ, "KILN_CACHE_DIR": str(self.root / "spirv")})
        return self.code.read_bytes()

    def variables(self, layer=True, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("KILN_", "VK_", "FAKE_"))}
        if layer:
            env |= {"VK_ADD_LAYER_PATH": str(Path(LAYER).parent), "VK_INSTANCE_LAYERS": NAME}
        return {**env, "VK_ICD_FILENAMES": str(self.root / "icd.json"),
                "FAKE_REAL_LIBRARY": str(LAVAPIPE[0]), "FAKE_ICD_LOG": str(self.root / "log"),
                "XDG_RUNTIME_DIR": str(self.root), "KILN_CACHE_DIR": str(self.root / "cache"), **more}

    def run(self, *command, layer=True, before=None, **more):
        """What it prints, and what the driver did. `before` is called in the process first."""
        (self.root / "log").write_text("")
        done = subprocess.run([str(word) for word in command], cwd=self.root, capture_output=True,
                              text=True, errors="replace", timeout=200,
                              preexec_fn=before, env=self.variables(layer, **more))
        if done.returncode == SKIP:
            print("no Vulkan device")
            sys.exit(SKIP)
        assert done.returncode == 0, (command, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout, (self.root / "log").read_text().split("\n")[:-1]

    def client(self, first, count, *how, **more):
        return self.run(CLIENT, self.code, first, count, *how, **more)

    def entries(self):
        return sorted((self.root / "cache").rglob("*.kiln"))


def hits(lines):
    return sum(" hit " in line for line in lines)


def pipelines_are_found_again(world):
    plain, lines = world.client(1, 5, layer=False)
    assert hits(lines) == 0 and len(lines) == 5, lines
    for how in ((), ("own",)):
        for start in range(2):
            out, lines = world.client(1, 5, *how)
            assert out == plain, out
            assert len(lines) == 5 and hits(lines) == 5 * start, (how, start, lines)


def what_cannot_be_used_is_not_there(world):
    plain, _ = world.client(1, 3, layer=False)
    world.client(1, 3)
    out, lines = world.client(1, 3, KILN_DISABLE="1")
    assert out == plain and hits(lines) == 0 and all("none" in line for line in lines), lines
    alone = world.root / "alone" / "vulkan" / "1"
    alone.mkdir(parents=True)
    for file in Path(LAYER).parent.iterdir():
        shutil.copy(file, alone)
    out, lines = world.client(1, 3, VK_ADD_LAYER_PATH=str(alone))
    assert out == plain and all("none" in line for line in lines), lines
    file = world.root / "file"
    file.write_text("")
    for broken in (str(file), "/proc/nowhere"):
        out, _ = world.client(1, 3, KILN_CACHE_DIR=broken)
        assert out == plain, (broken, out)
    for more in ({"KILN_READONLY": "1", "KILN_CACHE_DIR": str(world.root / "none")},
                 {"KILN_NO_CACHE": "1"},
                 {"KILN_CACHE_MAX_SIZE": "1KiB", "KILN_CACHE_DIR": str(world.root / "small")},
                 {"FAKE_ICD_EMPTY": "1", "KILN_CACHE_DIR": str(world.root / "empty")}):
        for how in ((), ("own",)):
            out, lines = world.client(1, 3, *how, **more)
            assert out == plain and hits(lines) == 0, (more, out, lines)
    assert not (world.root / "none").exists()
    assert not list((world.root / "empty").rglob("*.kiln"))


def write_nothing():
    """As on a full disk: each write to a file fails."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def a_full_disk_is_not_there(world):
    plain, _ = world.client(1, 3, layer=False)
    for how in ((), ("own",)):
        out, _ = world.client(1, 3, *how, before=write_nothing)
        assert out == plain, out
        assert not world.entries()
        world.client(1, 3, *how)
        out, _ = world.client(1, 3, *how, before=write_nothing)
        assert out == plain, out
        _, lines = world.client(1, 3, *how)
        assert hits(lines) == 3, lines
        shutil.rmtree(world.root / "cache")


def put_manifest(directory, library, **more):
    directory.mkdir(parents=True)
    manifest = json.loads((Path(LAYER).parent / "VkLayer_kiln_cache.json").read_text())
    manifest["layer"] |= {"library_path": library, **more}
    (directory / "layer.json").write_text(json.dumps(manifest))
    return directory


def an_implicit_layer_is_switched_by_variables(world):
    put_manifest(world.root / "data/vulkan/implicit_layer.d", LAYER)
    home = {"layer": False, "XDG_DATA_HOME": str(world.root / "data")}
    plain, lines = world.client(1, 5, layer=False)
    for more, caches in (({}, 0), ({"KILN_VULKAN_LAYER": "1"}, 5),
                         ({"KILN_VULKAN_LAYER": "1", "KILN_DISABLE": "1"}, 0)):
        out, lines = world.client(1, 5, **home, **more)
        assert out == plain and sum(" cache" in line for line in lines) == caches, (more, lines)
    _, lines = world.client(1, 5, **home, KILN_VULKAN_LAYER="1")
    assert hits(lines) == 5, lines
    # Both ways at once it is one layer.
    report = world.root / "report.json"
    world.run(KILN, "exec", "--report", report, "--", CLIENT, world.code, 1, 5, **home, KILN_VULKAN_LAYER="1")
    found = json.loads(report.read_text())
    assert (found["hits"], found["compiled"], found["bypassed"]) == (5, 0, 0), found


def a_layer_above_may_ask_the_instance(world):
    """For a device's functions: what it calls then is kiln's."""
    above = put_manifest(world.root / "above", ASKING, name="VK_LAYER_TEST_asking")
    plain, _ = world.client(1, 5, layer=False)
    for start in range(2):
        out, lines = world.client(1, 5, VK_ADD_LAYER_PATH=f"{above}:{Path(LAYER).parent}",
                                  VK_INSTANCE_LAYERS=f"VK_LAYER_TEST_asking:{NAME}")
        assert out == plain and hits(lines) == 5 * start, (start, lines)


def a_program_with_binaries_is_left_alone(world):
    plain, _ = world.client(1, 3, "binaries", layer=False, FAKE_ICD_BINARIES="1")
    for _ in range(2):
        out, lines = world.client(1, 3, "binaries", FAKE_ICD_BINARIES="1")
        assert out == plain and lines == ["compute miss none"] * 3, lines
    assert not world.entries()


def errors_are_the_drivers(world):
    plain, _ = world.client(1, 3, layer=False, FAKE_ICD_FAIL="1")
    assert plain.startswith("1: -2 none"), plain
    out, _ = world.client(1, 3, FAKE_ICD_FAIL="1")
    assert out == plain, out


def damage_never_reaches_the_driver(world):
    """The driver aborts on data that is not whole."""
    plain, _ = world.client(1, 3)
    world.client(1, 3, "own")
    for file in world.entries():
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 255
        file.write_bytes(data)
    for file in world.entries()[:2]:
        file.write_bytes(file.read_bytes()[:-100])
    for how in ((), ("own",)):
        out, lines = world.client(1, 3, *how)
        assert out == plain and hits(lines) == 0, (how, lines)
        _, lines = world.client(1, 3, *how)
        assert hits(lines) == 3, (how, lines)


def processes_that_save_at_once_lose_nothing(world):
    """Some are killed, when they have made theirs or while they save."""
    env = world.variables(FAKE_ICD_LOG="")
    started = [subprocess.Popen([CLIENT, str(world.code), str(100 * k), "20", "own" if k < 5 else "hold"],
                                env=env, cwd=world.root, stdout=subprocess.PIPE, text=True)
               for k in range(8)]
    for process in started[5:]:
        for _ in range(20):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    for process in started:
        process.communicate(timeout=200)
    assert [process.returncode for process in started] == [0] * 5 + [-signal.SIGKILL] * 3
    for k in range(5):
        _, lines = world.client(100 * k, 20, "own", KILN_READONLY="1")
        assert hits(lines) == 20, (k, hits(lines))


def processes_killed_while_they_save_spoil_nothing(world):
    """A save begins a second after the first pipeline, and takes a fifth of one here. An entry is barred after two kills in
    loads without one that ends between them (store/disk/loads.h): each turn kills one, when it has loaded what is stored."""
    env = world.variables(FAKE_ICD_LOG="", FAKE_ICD_SLOW="200")
    turns = 4
    for turn in range(turns):
        started = [subprocess.Popen([CLIENT, str(world.code), str(1000 * turn + 100 * k), "5", how], env=env, cwd=world.root,
                                    stdout=subprocess.PIPE, text=True) for k, how in enumerate(("own", "own", "own", "hold"))]
        started[3].stdout.readline()
        time.sleep(random.uniform(0.9, 1.5))
        started[3].send_signal(signal.SIGKILL)
        for process in started:
            process.communicate(timeout=200)
        assert [process.returncode for process in started] == [0] * 3 + [-signal.SIGKILL]
    for turn in range(turns):
        for k in range(3):
            _, lines = world.client(1000 * turn + 100 * k, 5, "own", KILN_READONLY="1")
            assert hits(lines) == 5, (turn, k, lines)


def a_process_that_is_killed_has_saved(world):
    env = world.variables()
    process = subprocess.Popen([CLIENT, str(world.code), "7", "4", "hold"], env=env, cwd=world.root,
                               stdout=subprocess.PIPE, text=True)
    for _ in range(600):
        if world.entries():
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=200)
    _, lines = world.client(7, 4, "own")
    assert hits(lines) == 4, lines


def exec_sets_it(world):
    done = subprocess.run([KILN, "exec", "--print"], capture_output=True, text=True, check=True,
                          env=world.variables(layer=False, VK_INSTANCE_LAYERS="VK_LAYER_OWN",
                                              VK_ADD_LAYER_PATH="/nowhere"))
    assert f"export VK_INSTANCE_LAYERS='VK_LAYER_OWN:{NAME}'" in done.stdout, done.stdout
    assert f"export VK_ADD_LAYER_PATH='/nowhere:{Path(LAYER).parent}'" in done.stdout, done.stdout
    done = subprocess.run([KILN, "exec", "--print"], capture_output=True, text=True, check=True,
                          env=world.variables(layer=False, VK_LAYER_PATH="/nowhere"))
    assert f"export VK_LAYER_PATH='/nowhere:{Path(LAYER).parent}'" in done.stdout, done.stdout
    report = world.root / "report.json"
    for start in range(2):
        world.run(KILN, "exec", "--report", report, "--", CLIENT, world.code, 1, 3, layer=False)
        found = json.loads(report.read_text())
        assert (found["hits"], found["compiled"]) == ((3, 0) if start else (0, 3)), found
    out, _ = world.run(KILN, "doctor", "--json", "--", CLIENT, world.code, 1, 1, layer=False)
    rows = [row for row in json.loads(out)["compilers"] if row["compiler"] == "Vulkan"]
    assert rows and all(row["answers"] == "kiln" for row in rows), rows


def use_validation(world):
    settings = world.root / "vk_layer_settings.txt"
    settings.write_text("khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG\n"
                        f"khronos_validation.log_filename = {world.root / 'validation'}\n"
                        "khronos_validation.report_flags = error,warn,perf\n")
    (world.root / "validation").unlink(missing_ok=True)
    return {"VK_LAYER_SETTINGS_PATH": str(settings)}


def validation_is_silent(world):
    """Above kiln's layer and below it, on misses and hits; and it can be heard."""
    if not Path("/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json").exists():
        print("the validation layer is not installed")
        return
    world.client(1, 3, "binaries", FAKE_ICD_BINARIES="1", VK_INSTANCE_LAYERS=VALIDATION, **use_validation(world))
    assert (world.root / "validation").read_text() != ""
    for layers in (f"{NAME}:{VALIDATION}", f"{VALIDATION}:{NAME}"):
        for how in ((), ("own",)):
            for start in range(2):
                _, lines = world.client(1, 3, *how, VK_INSTANCE_LAYERS=layers, **use_validation(world))
                said = (world.root / "validation").read_text()
                assert hits(lines) == 3 * start and said == "", (layers, how, lines, said)
        shutil.rmtree(world.root / "cache")


def strangers_see_no_difference(world):
    """vulkaninfo, and vkcube with the validation layer above kiln's and below it."""
    if shutil.which("vulkaninfo") is None or shutil.which("xvfb-run") is None:
        print("vulkaninfo, vkcube or xvfb-run is not installed")
        return
    out = [world.run("vulkaninfo", layer=layer)[0] for layer in (False, True)]
    out = [text[text.index("Device Properties and Extensions"):] for text in out]
    out = [re.sub(r"(usage|budget) +=.*", "", text) for text in out]  # of memory, which is new each time
    assert out[0] == out[1]
    cube = ("xvfb-run", "-a", "vkcube", "--c", "3")
    said = []
    for layers in (VALIDATION, f"{NAME}:{VALIDATION}", f"{VALIDATION}:{NAME}", NAME):
        _, lines = world.run(*cube, VK_INSTANCE_LAYERS=layers, **use_validation(world))
        said.append((world.root / "validation").read_text() if VALIDATION in layers else said[0])
        if NAME in layers:
            assert lines == [f"graphics {'hit' if len(said) > 2 else 'miss'} cache"], (layers, lines)
    assert said[0] == said[1] == said[2], said


def main():
    if not LAVAPIPE:
        print("skipped: lavapipe is not installed (Debian: mesa-vulkan-drivers)")
        sys.exit(SKIP)
    for check in (pipelines_are_found_again, what_cannot_be_used_is_not_there, a_full_disk_is_not_there,
                  an_implicit_layer_is_switched_by_variables, a_layer_above_may_ask_the_instance,
                  a_program_with_binaries_is_left_alone, errors_are_the_drivers,
                  damage_never_reaches_the_driver, processes_that_save_at_once_lose_nothing,
                  processes_killed_while_they_save_spoil_nothing, a_process_that_is_killed_has_saved,
                  exec_sets_it, validation_is_silent, strangers_see_no_difference):
        with tempfile.TemporaryDirectory() as root:
            start = time.monotonic()
            check(World(root))
            print(f"{check.__name__}: {time.monotonic() - start:.1f} s", flush=True)


if __name__ == "__main__":
    main()
