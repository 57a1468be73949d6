"""kiln.triton against a stand-in of Triton's compile (triton_compile.py).

`python/by_hand/adapters.py` runs the same against Triton's own modules.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any, Callable

import pytest
from conftest import PACKAGE
from triton_compile import compile_kernel, load_kernel

import kiln
from kiln import _entries, _files, _triton_key, triton
from kiln._bundle import pack

def test_a_group_is_found_by_the_next_process(python: Callable[..., str], home: Path) -> None:
    compile_kernel(triton.CacheManager("KEY"), "add", "first")
    program = """
import sys
sys.path.insert(0, sys.argv[1])
from triton_compile import compile_kernel, load_kernel
from kiln import triton, default_cache
print(*load_kernel(compile_kernel(triton.CacheManager("KEY"), "add", "second")), default_cache().stats()["hits_disk"])
"""
    kiln.default_cache().close()
    assert python(program, Path(__file__).parent).split() == ["first", "1"]


def test_keys_and_names_are_kept_apart() -> None:
    for key in ("A", "B"):
        for name in ("add", "sub"):
            compile_kernel(triton.CacheManager(key), name, f"{key} {name}")
    for key in ("A", "B"):
        for name in ("add", "sub"):
            assert load_kernel(compile_kernel(triton.CacheManager(key), name, "again")) == {f"{key} {name}"}
    assert triton.CacheManager("C").get_group("add.json") is None
    assert triton.CacheManager("A").get_group("mul.json") is None


def test_single_files(python: Callable[..., str]) -> None:
    """Launchers, utilities and autotuning results are put without a group."""
    manager = triton.CacheManager("KEY")
    assert manager.get_file("launcher.so") is None and not manager.has_file("launcher.so")
    path = manager.put(b"\x7fELF", "launcher.so", binary=True)
    assert Path(path).read_bytes() == b"\x7fELF" and Path(path).name == "launcher.so"
    manager.put('{"best": 1}', "matmul.autotune.json", binary=False)
    again = triton.CacheManager("KEY")
    for name, content in (("launcher.so", b"\x7fELF"), ("matmul.autotune.json", b'{"best": 1}')):
        found = again.get_file(name)
        assert found is not None and Path(found).read_bytes() == content


def test_what_runs_on_the_host_is_said_to(tmp_path: Path) -> None:
    """A stage that begins with cpu. is not taken from remotes that nobody signed."""
    manager = triton.CacheManager("KEY")
    manager.put_group("add.json", {"add.so": manager.put(b"\x7fELF", "add.so")})
    manager.put(b"\x7fELF", "launcher.so")
    compile_kernel(triton.CacheManager("KEY"), "add_gpu", "a")
    cache = kiln.default_cache()
    recipes = [
        subprocess.run([os.environ["KILN_TEST_COMMAND"], "show", str(entry.key)], capture_output=True, text=True).stdout
        for entry in cache.entries("triton")
    ] if os.environ.get("KILN_TEST_COMMAND") else []
    if not recipes:
        pytest.skip("KILN_TEST_COMMAND does not name the command")
    stages = sorted(line.split()[-1].strip('"') for text in recipes for line in text.splitlines() if line.startswith("stage") and line.endswith('"'))
    assert stages == ["cpu.triton.file", "cpu.triton.file", "cpu.triton.group", "triton.group"]


def test_files_are_private_and_go_with_the_process(python: Callable[..., str], tmp_path: Path) -> None:
    program = """
import os, stat
from kiln import triton
path = triton.CacheManager("KEY").put(b"code", "add.cubin")
place = os.path.dirname(os.path.dirname(path))
assert stat.S_IMODE(os.stat(place).st_mode) == 0o700
print(place)
"""
    (tmp_path / "temporary").mkdir()
    place = Path(python(program, TMPDIR=str(tmp_path / "temporary")).strip())
    assert place.parent == tmp_path / "temporary" and not place.exists()


def test_files_of_killed_processes_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone, alive = tmp_path / f"{_files._prefix()}4999999-x", tmp_path / f"{_files._prefix()}1-x"
    elsewhere = tmp_path / f"kiln-{os.getuid()}-0123456789ab-4999999-x"  # another machine's, or container's
    for place in (gone, alive, elsewhere):
        place.mkdir()
    _files._remove_abandoned(str(tmp_path))
    assert not gone.exists() and alive.exists() and elsewhere.exists()


class OwnManager:
    """As Triton's FileCacheManager."""

    def __init__(self, key: str, override: bool = False, dump: bool = False, **more: Any) -> None:
        self._place, self.more = Path(os.environ["TRITON_CACHE_DIR"]) / key, more
        self._place.mkdir(parents=True, exist_ok=True)

    def put(self, data: Any, filename: str, binary: bool = True, **more: Any) -> str:
        self.more.update(more)
        path = self._place / filename
        path.write_bytes(data if isinstance(data, bytes) else str(data).encode())
        return str(path)


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where Triton's own manager writes."""
    module = types.ModuleType("triton.runtime.cache")
    module.FileCacheManager = OwnManager  # type: ignore[attr-defined]
    for name in ("triton", "triton.runtime"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "own"))
    monkeypatch.setattr(_files, "_places", {})
    monkeypatch.setattr(_entries, "_said", set())
    return tmp_path / "own"


@pytest.mark.parametrize("wrong", ["gone", "a file", "noexec"])
def test_where_temporary_files_cannot_be(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Below the cache's directory, then; a library in a directory mounted noexec would not be mapped."""
    place, root = tmp_path / "temporary", kiln.default_cache().root
    if wrong != "gone":
        place.touch() if wrong == "a file" else place.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(place))
    told = os.statvfs

    def statvfs(path: Any) -> Any:
        facts = told(path)
        if wrong == "noexec" and str(path).startswith(str(place)):
            return types.SimpleNamespace(f_flag=facts.f_flag | os.ST_NOEXEC)
        return facts

    monkeypatch.setattr(os, "statvfs", statvfs)
    group = compile_kernel(triton.CacheManager("KEY"), "add", "me")
    assert load_kernel(group) == {"me"} and not caplog.records
    assert all(path.startswith(root) for path in group.values()) and not own.exists()
    # They are not entries, and in nobody's way.
    cache = kiln.default_cache()
    assert len(list(cache.entries())) == 1 and cache.prune(max_bytes=0).entries_removed == 1
    assert load_kernel(group) == {"me"}
    _files._remove(os.path.dirname(os.path.dirname(group["add.cubin"])), os.getpid())
    assert not [name for name in os.listdir(root) if name.startswith(_files._prefix())]


def test_where_no_files_can_be_tritons_own_manager_writes(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    monkeypatch.setenv("KILN_CACHE_DIR", "/proc/no-such-place")
    for name in ("add", "sub"):
        group = compile_kernel(triton.CacheManager("KEY"), name, "me")
        assert load_kernel(group) == {"me"} and all(Path(path).parent == own / "KEY" for path in group.values())
    # What is found in memory has to be written, too.
    assert load_kernel(compile_kernel(triton.CacheManager("KEY"), "add", "again")) == {"me"}
    assert [record.getMessage() for record in caplog.records if "writing a file" in record.getMessage()].__len__() == 1
    own.chmod(0o500)
    monkeypatch.setenv("TRITON_CACHE_DIR", "/proc/no-such-place")
    with pytest.raises(OSError):  # as Triton alone
        triton.CacheManager("KEY").put(b"code", "mul.cubin")


def test_what_a_newer_triton_asks_for(own: Path) -> None:
    assert Path(triton.CacheManager("KEY").put(b"code", "add.cubin", binary=True, durable=True)).read_bytes() == b"code"
    manager = triton.CacheManager("KEY", scope="rank")  # nothing that kiln knows of
    assert manager._own.more == {"scope": "rank"}
    assert Path(manager.put(b"code", "add.cubin", durable=True)).parent == own / "KEY"
    assert manager._own.more == {"scope": "rank", "durable": True}


def test_a_broken_cache_fails_no_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KILN_CACHE_MAX_SIZE", "much")
    assert load_kernel(compile_kernel(triton.CacheManager("KEY"), "add", "me")) == {"me"}


def test_a_damaged_payload_is_a_miss() -> None:
    recipe = triton._GROUPS[0].recipe(key="KEY", name="add.json")
    for payload in (b"x", b"KBN\x01\xff\xff\xff\xff", b"KBN\x01\x01\0\0\0\x04\0\0\0\0\0\0\0\0\0\0\0../x"):
        kiln.default_cache().put(recipe, payload)
        assert triton.CacheManager("KEY").get_group("add.json") is None


def test_a_portable_group_brings_no_host_code() -> None:
    """A remote's unsigned entry is taken for a portable stage, whatever names it holds."""
    files = {"k.json": b"{}", "k.cubin": b"code", "launcher.so": b"host code"}
    triton._GROUPS[0].put(pack(files), key="forged", name="k.json")
    assert triton.CacheManager("forged").get_group("k.json") is None
    triton._GROUPS[1].put(pack(files), key="signed", name="k.json")
    assert sorted(triton.CacheManager("signed").get_group("k.json") or {}) == sorted(files)


def test_remote_backend() -> None:
    first = triton.Remote("KEY")
    first.put("add.cubin", b"code")
    assert triton.Remote("KEY").get(["add.cubin", "add.ptx"]) == {"add.cubin": b"code"}


def test_inductor_finds_binaries_where_it_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "inductor"
    place.mkdir()
    monkeypatch.setenv("TRITON_CACHE_DIR", str(place))
    compile_kernel(triton.CacheManager("PLAIN"), "add", "me")
    assert not list(place.iterdir())
    monkeypatch.setitem(sys.modules, "torch._inductor", sys)
    compile_kernel(triton.CacheManager("KEY"), "add", "me")
    assert (place / "KEY" / "add.cubin").read_text() == "cubin by me"
    # What Inductor unpacked by itself, kiln does not have.
    (place / "OTHER").mkdir()
    for name in ("add.json", "add.cubin", "__grp__add.json"):
        (place / "OTHER" / name).write_text("{}")
    group = triton.CacheManager("OTHER").get_group("add.json")
    assert group is not None and sorted(group) == ["add.cubin", "add.json"]


# --- triton#11512, and vllm#52413 ---------------------------------------------------------------------------------

RACE = """
import errno, os, random, sys
sys.path.insert(0, sys.argv[1])
from triton_compile import compile_kernel, load_kernel
manager = {manager}
sys.stdin.readline()
mixed = failed = 0
for turn in range({turns}):
    for kernel in range(3):
        try:
            writers = load_kernel(compile_kernel(manager(f"KEY{{turn}}"), f"kernel{{kernel}}", f"{{os.getpid()}} {{turn}}"))
            mixed += len(writers) != 1
        except OSError as error:
            failed += 1
print(mixed, failed)
"""

#: What a network file system does to others' files: they vanish, and directories are busy.
VANDAL = """
import os, sys
print("ready", flush=True)
while True:
    for place, _, names in os.walk(sys.argv[1], topdown=False):
        for name in names:
            try:
                os.unlink(os.path.join(place, name))
            except OSError:
                pass
"""


def race(tmp_path: Path, manager: str, turns: int = 20) -> list[tuple[int, int]]:
    """Four processes that compile the same kernels, each to other bytes, over a shared directory that a fifth spoils;
    mixed kernels and failed compiles of each."""
    shared = tmp_path / "shared"
    shared.mkdir()
    environment = {
        **os.environ,
        "PYTHONPATH": str(PACKAGE),
        "TRITON_CACHE_DIR": str(shared),
        "KILN_CACHE_DIR": str(tmp_path / "kiln"),
    }
    if "KILN_TEST_FAULTFS" in os.environ:
        # As over NFS: locks do nothing, a file that was open goes, an operation is done and reported as failed.
        environment["LD_PRELOAD"] = os.environ["KILN_TEST_FAULTFS"]
        environment["KILN_FAULT_PREFIX"] = str(tmp_path / "kiln")
        environment["KILN_FAULT"] = "lock:*:skip;rename:2:late-EIO;link:3:late-EIO;open:9:ESTALE;read:11:ESTALE;write:7:ESTALE"
    program = RACE.format(manager=manager, turns=turns)
    vandal = subprocess.Popen([sys.executable, "-c", VANDAL, str(shared)], stdout=subprocess.PIPE)
    try:
        assert vandal.stdout is not None and vandal.stdout.readline()
        ranks = [
            subprocess.Popen(
                [sys.executable, "-c", program, str(Path(__file__).parent)],
                env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )
            for _ in range(4)
        ]  # fmt: skip
        for rank in ranks:
            assert rank.stdin is not None
            rank.stdin.write("go\n")
            rank.stdin.flush()
        return [tuple(map(int, rank.communicate(timeout=100)[0].split())) for rank in ranks]  # type: ignore[misc]
    finally:
        vandal.kill()
        vandal.wait()
        assert vandal.stdout is not None
        vandal.stdout.close()


def test_triton_11512_no_race_on_a_shared_directory(tmp_path: Path) -> None:
    prelude = "__import__('kiln.triton').triton.CacheManager"
    assert race(tmp_path, prelude) == [(0, 0)] * 4


def test_the_report_of_kiln_exec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = tmp_path / "report"
    report.write_text("")
    monkeypatch.setenv("KILN_EXEC_REPORT", str(report))
    for _ in range(2):
        compile_kernel(triton.CacheManager("KEY"), "add", "me")
    lines = [line.split("\t") for line in report.read_text().splitlines()]
    assert [line[:2] + line[4:] for line in lines] == [
        ["triton", "compiled", "add.json", ""],
        ["triton", "memory", "add.json", ""],
    ]
    assert int(lines[0][2]) >= int(lines[1][3]) > 0  # what the hit spared is what the compile took


# --- Triton's digest of its own files -----------------------------------------------------------------------------


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package like Triton's, whose files are old enough."""
    monkeypatch.setattr(_triton_key, "_SETTLED_NS", 0)
    root = tmp_path / "triton"
    for name in ("runtime/cache.py", "compiler/code.py", "_C/libtriton.so"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    time.sleep(0.02)  # what is written next has another time
    return root


def asked(root: Path) -> tuple[str, bool]:
    """The digest that a process gets, and whether the process read the files for it."""
    read = []

    def own() -> str:
        read.append(root)
        return "-".join(path.read_text() for path in sorted(root.rglob("*")) if path.is_file())

    module = types.ModuleType("triton.runtime.cache")
    module.__file__, module.triton_key = str(root / "runtime/cache.py"), own  # type: ignore[attr-defined]
    _triton_key.install(module)
    _triton_key.install(module)
    assert module.triton_key() == module.triton_key()
    return module.triton_key(), bool(read)


def test_tritons_files_are_read_once(sources: Path) -> None:
    first, read = asked(sources)
    assert read and asked(sources) == (first, False)
    (sources / "runtime/__pycache__").mkdir()
    (sources / "runtime/__pycache__/cache.pyc").write_text("bytecode")
    assert asked(sources) == (first, False)


def test_tritons_digest_stays_on_this_machine(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is of sizes, times and inodes: of use to nobody else. No server is asked, or sent anything."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        monkeypatch.setenv("KILN_REMOTE", f"redis://127.0.0.1:{server.getsockname()[1]}/?timeout=50&upload-timeout=50&flush=50")
        asked(sources)
        assert not asked(sources)[1]
        assert kiln.default_cache().stats()["note_hits"] == 1
        kiln.default_cache().close()
        with pytest.raises(BlockingIOError):
            server.accept()
        triton._FILES.get(key="KEY", name="launcher.so")
        if not kiln.default_cache().stats()["remote_errors"] + kiln.default_cache().stats()["remote_timeouts"]:
            pytest.skip("no module for Redis")
        server.settimeout(30)
        server.accept()[0].close()  # so one would have been seen


@pytest.mark.parametrize("change", ["content", "replaced", "added", "gone", "linked"])
def test_and_again_when_one_changed(sources: Path, tmp_path: Path, change: str) -> None:
    code = sources / "compiler/code.py"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "more.py").write_text("more")
    if change == "linked":
        (sources / "backends").symlink_to(elsewhere)
    asked(sources)
    before = code.stat()
    time.sleep(0.02)
    if change == "content":  # of the same size, its time set back
        code.write_text("compiler/CODE.py")
        os.utime(code, ns=(before.st_atime_ns, before.st_mtime_ns))
    elif change == "replaced":
        (sources / "new").write_text("compiler/CODE.py")
        os.utime(sources / "new", ns=(before.st_atime_ns, before.st_mtime_ns))
        (sources / "new").replace(code)
    elif change == "added":
        (sources / "compiler/more.py").write_text("more")
    elif change == "gone":
        code.unlink()
    else:
        (elsewhere / "more.py").write_text("MORE")
    answer, read = asked(sources)
    assert read and asked(sources) == (answer, False)


def test_young_files_are_always_read(sources: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_triton_key, "_SETTLED_NS", 3_600_000_000_000)
    assert asked(sources)[1] and asked(sources)[1]
    (sources / "loop").symlink_to(sources)
    monkeypatch.setattr(_triton_key, "_SETTLED_NS", 0)
    monkeypatch.setattr(_triton_key, "_FILES_MAX", 50)
    assert asked(sources)[1] and asked(sources)[1]


def test_a_triton_without_the_function_is_left_alone() -> None:
    module = types.ModuleType("triton.runtime.cache")
    _triton_key.install(module)
    assert not hasattr(module, "triton_key")
