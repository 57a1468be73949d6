#!/usr/bin/env python3
"""deployments.py KILN LIBEXEC NVRTC PAGE: the Dockerfile and the Slurm script of
PAGE (docs/use/exec.md), worked through below a directory of this test's. The fake NVRTC compiles;
`apt-get`, `srun` and the programs are stand-ins that check what they are given. No container, no
cluster: what is tested is that the files are well formed and that their commands, variables and
paths start a program warm."""
import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KILN, LIBEXEC, NVRTC, PAGE = sys.argv[1:5]
PROGRAM = """
import ctypes, os
nvrtc = ctypes.CDLL("libnvrtc.so.13")
for n in range(3):
    program = ctypes.c_void_p()
    text = b"__global__ void k(int *a) { *a = %d; }" % n
    options = (ctypes.c_char_p * 1)(b"--gpu-architecture=sm_90")
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, b"k.cu", 0, None, None) == 0
    assert nvrtc.nvrtcCompileProgram(program, 1, options) == 0
    assert nvrtc.nvrtcDestroyProgram(ctypes.byref(program)) == 0
"""
# Runs the tasks of all nodes at once. A node has its own /tmp: another directory for the cache.
SRUN = """#!/bin/sh
for node in $(seq "$TEST_NODES"); do for task in $(seq "$TEST_TASKS"); do
    ( export KILN_CACHE_DIR="$KILN_CACHE_DIR-node$node" SLURM_NODEID=$((node - 1)) SLURM_LOCALID=$((task - 1))
      "$@" || touch "$TEST_ROOT/failed" ) &
done; done
wait
"""
APT = """#!/bin/sh
[ "$*" = update ] && exit 0
[ "$1 $2" = "install -y" ] || exit 1
shift 2
for package; do
    case $package in /*.deb) [ -s "$package" ] || exit 2; cp "$package" "$TEST_ROOT/installed" ;; *[!a-z0-9.+-]*) exit 3 ;; esac
done
"""


class World:
    def __init__(self, place):
        self.root = Path(place)
        self.log = self.root / "compiles"
        self.work = self.root / "work"
        self.bin = self.root / "bin"
        for folder in (self.work, self.bin):
            folder.mkdir()
        for name in ("warmup.py", "serve.py", "train.py"):
            (self.work / name).write_text(PROGRAM)
        for name, text in (("srun", SRUN), ("apt-get", APT)):
            (self.bin / name).write_text(text)
            (self.bin / name).chmod(0o755)
        (self.bin / "kiln").symlink_to(KILN)
        for name in ("python", "python3"):
            (self.bin / name).symlink_to(sys.executable)

    def environment(self, **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("KILN_", "LD_", "NVRTC_", "SLURM_"))}
        env.update(PATH=f"{self.bin}:{os.environ['PATH']}", FAKENVRTC_LOG=str(self.log), KILN_LIBEXEC=LIBEXEC,
                   KILN_NVRTC_LIBRARY=NVRTC, KILN_LOG="warn", TEST_ROOT=str(self.root), HOME=str(self.root / "home"),
                   LD_LIBRARY_PATH=os.path.dirname(NVRTC))  # for NVRTC's builtins
        env.update(more)
        return env

    def run(self, command, **more):
        done = subprocess.run(command, env=self.environment(**more), cwd=self.work, capture_output=True, text=True,
                              timeout=200, check=False)
        assert done.returncode == 0 and done.stderr == "", (command, done.returncode, done.stderr[-2000:])
        return done.stdout

    def place(self, path):
        """Where an absolute path of the page's lies in this test."""
        return str(self.root / "image") + path

    def compiles(self):
        count = len(self.log.read_text().splitlines()) if self.log.exists() else 0
        self.log.write_text("")
        return count


def blocks_of(kind):
    text = Path(PAGE).read_text(encoding="utf-8")
    return re.findall(rf"^```{kind}\n(.*?)^```", text, re.S | re.M)


def block_with(kind, start):
    found = [block for block in blocks_of(kind) if block.startswith(start)]
    assert len(found) == 1, f"{PAGE} has {len(found)} blocks of {kind} that begin with {start}"
    return found[0]


# --- Docker ---

def instructions(text):
    """Each instruction with its arguments; a line that ends in a backslash goes on."""
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        if line.strip() and not line.startswith("#"):
            word, rest = line.split(None, 1)
            yield word, rest


def docker(world):
    fill = [block for block in blocks_of("sh") if "kiln pack create" in block]
    assert len(fill) == 1, fill
    pack = re.search(r"(/\S+\.kpack)", fill[0]).group(1)
    Path(world.place(pack)).parent.mkdir(parents=True)
    world.run(["sh", "-ec", fill[0].replace(pack, world.place(pack))], KILN_CACHE_DIR=str(world.root / "filled"))
    made = world.compiles()
    assert made == 3, made
    context = world.work
    shutil.move(world.place(pack), context / os.path.basename(pack))
    (context / "kiln.deb").write_text("a package")

    variables, start, command, base, where = {}, None, None, None, None
    for word, rest in instructions(block_with("text", "FROM ")):
        if word == "FROM":
            base = rest
        elif word == "COPY":
            *sources, target = rest.split()
            assert target.startswith("/") and (target.endswith("/") or len(sources) == 1), rest
            Path(world.place(target)).mkdir(parents=True, exist_ok=True)
            for source in sources:
                shutil.copy(context / source, world.place(target))
        elif word == "RUN":
            world.run(["sh", "-ec", re.sub(r"(?<![\w.])(/opt/\S+)", lambda m: world.place(m.group(1)), rest)])
        elif word == "ENV":
            name, value = rest.split("=", 1)
            variables[name] = world.place(value) if value.startswith("/opt/") else value
        elif word == "WORKDIR":
            where = world.place(rest)
        elif word == "ENTRYPOINT":
            start = json.loads(rest)
        elif word == "CMD":
            command = json.loads(rest)
        else:
            raise AssertionError(f"an instruction that this test does not know: {word}")
    assert base and (world.root / "installed").exists(), "kiln is not installed"
    assert os.path.exists(variables["KILN_PACKS"]), variables
    world.work = Path(where)
    # A new container: an empty home, nothing written before.
    world.run(start + command, **variables)
    assert world.compiles() == 0, "a container compiles"
    world.run(start + command, **{**variables, "KILN_PACKS": ""}, KILN_CACHE_DIR=str(world.root / "without"))
    assert world.compiles() == 3, "the pack makes no difference"


# --- Slurm ---

def slurm(world):
    script = block_with("text", "#!/bin/bash\n#SBATCH")
    options = dict(word.lstrip("-").split("=", 1) for line in script.splitlines() if line.startswith("#SBATCH ")
                   for word in shlex.split(line[len("#SBATCH "):]))
    assert int(options["nodes"]) > 1 and int(options["ntasks-per-node"]) > 1, options
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = shutil.which("redis-server")
    if server is None:
        return "redis-server is not installed"
    assert "redis://cache.cluster" in script
    local = f"redis://127.0.0.1:{port}?connect-timeout=20s&timeout=30s&budget=200s"  # a machine may be busy
    script = script.replace("redis://cache.cluster", f"'{local}'").replace("/tmp/", f"{world.root}/tmp-")
    redis = subprocess.Popen([server, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir",
                              str(world.root)], stdout=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.02)
        (world.work / "job.sh").write_text(script)
        variables = {"SLURM_JOB_ID": "4711", "TEST_NODES": "2", "TEST_TASKS": "4"}
        world.run(["bash", "job.sh"], **variables)
        assert not (world.root / "failed").exists()
        first = world.compiles()
        # Once in all; once a node where the server was too slow to say that another compiles.
        assert 3 <= first <= 6, f"{first} compiles of 3 kernels by 8 processes on 2 nodes"
        assert {p.name for p in world.root.glob("tmp-kiln-4711-node*")} == {f"tmp-kiln-4711-node{n}" for n in (1, 2)}
        world.run(["bash", "job.sh"], **{**variables, "SLURM_JOB_ID": "4712"})
        assert world.compiles() == 0, "the next job compiles"
    finally:
        redis.kill()
        redis.wait()
    return None


def main():
    for case in (docker, slurm):
        with tempfile.TemporaryDirectory() as place:
            why = case(World(place))
            print(f"SKIP {case.__name__}: {why}" if why else f"ok: {case.__name__}", flush=True)


main()
