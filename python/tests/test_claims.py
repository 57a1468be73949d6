"""Claims: kiln.Cache.claim, and the adapters that take them, in processes that start together. The processes are children of
the test's, which holds no claim while they run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import types
from pathlib import Path
from typing import Any, Iterator, Optional

import pytest
import start_stubs
from conftest import PACKAGE

import kiln
from kiln import _claims, _entries, inductor, jax, triton

RECIPE = "kiln.Recipe('test', 1, text='x')"


def recipe() -> kiln.Recipe:
    return kiln.Recipe("test", 1, text="x")


# --- one process --------------------------------------------------------------------------------------------------


def test_a_claim_and_then_a_blob(cache: kiln.Cache) -> None:
    with cache.claim(recipe()) as claim:
        assert claim.blob is None and "open" in repr(claim)
        assert bytes(claim.fulfil(b"made", b"facts")) == b"made"
        assert claim.blob is not None and "ended" in repr(claim)
    with cache.claim(recipe()) as claim:
        assert claim.blob is not None and bytes(claim.blob) == b"made" and bytes(claim.blob.facts) == b"facts"
        assert claim.blob.origin == "memory"
        with pytest.raises(kiln.InvalidError):
            claim.fulfil(b"again")
    assert (cache.stats()["compiles"], cache.stats()["puts"]) == (1, 1)


def test_what_is_not_fulfilled_is_abandoned(cache: kiln.Cache) -> None:
    with pytest.raises(ValueError):
        with cache.claim(recipe()) as claim:
            raise ValueError("a compile that fails")
    with pytest.raises(kiln.InvalidError):
        claim.fulfil(b"late")
    claim = cache.claim(recipe())
    for payload in (b"", "text"):
        claim = cache.claim(recipe())
        with pytest.raises((kiln.InvalidError, TypeError)):
            claim.fulfil(payload)
        assert "ended" in repr(claim)
    assert cache.get(recipe()) is None and cache.stats()["compiles"] == 0


def test_a_cache_is_closed_after_its_claims(tmp_path: Path) -> None:
    cache = kiln.Cache(tmp_path / "cache")
    claim = cache.claim(recipe())
    cache.close()
    with pytest.raises(kiln.InvalidError):
        claim.fulfil(b"late")
    claim.abandon()
    with pytest.raises(kiln.InvalidError):
        cache.claim(recipe())


# --- several ------------------------------------------------------------------------------------------------------


class Peer:
    """A process that runs a program, and is told when to go on."""

    def __init__(self, program: str, **variables: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE), **variables}
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-c", "import sys\n" + program],
            env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def hear(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def go(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def end(self) -> str:
        said, _ = self.process.communicate(timeout=100)
        assert self.process.returncode == 0
        return said.strip()


@pytest.fixture
def peers() -> Iterator[list[Peer]]:
    started: list[Peer] = []
    yield started
    for peer in started:
        peer.process.kill()
        peer.process.communicate()


HOLD = f"""
import kiln
with kiln.default_cache().claim({RECIPE}) as claim:
    print(claim.blob)
    sys.stdin.readline()
    claim.fulfil(b"held")
"""

WAIT = f"""
import kiln
print("asks")
try:
    with kiln.default_cache().claim({RECIPE}) as claim:
        print(claim.blob and bytes(claim.blob))
except KeyboardInterrupt:
    print("interrupted")
"""


def test_another_process_waits(peers: list[Peer]) -> None:
    peers += [Peer(HOLD)]
    assert peers[0].hear() == "None"
    peers += [Peer(WAIT), Peer(WAIT)]
    assert peers[1].hear() == peers[2].hear() == "asks"
    peers[0].go()
    assert peers[0].end() == "" and peers[1].end() == peers[2].end() == "b'held'"


def test_ctrl_c_ends_a_wait(peers: list[Peer]) -> None:
    peers += [Peer(HOLD)]
    assert peers[0].hear() == "None"
    peers += [Peer(WAIT)]
    assert peers[1].hear() == "asks"
    time.sleep(0.5)  # it may come before the wait, and is raised then, too
    peers[1].process.send_signal(signal.SIGINT)
    assert peers[1].end() == "interrupted"
    peers[0].go()
    assert peers[0].end() == ""


# --- Triton -------------------------------------------------------------------------------------------------------

#: Kernels, one after the other, as a program has them under `kiln exec`.
CROWD = """
import _kiln_start
from triton.compiler import ASTSource, compile
import kiln
print("ready")
sys.stdin.readline()
made = [compile(ASTSource(f"kernel{number}"), target="cuda:90") for number in range(16)]
print(hash(tuple(kernel.kernel for kernel in made)), kiln.default_cache().stats()["wait_timeouts"])
"""


@pytest.fixture
def stubs(tmp_path: Path) -> dict[str, str]:
    """The variables of a process that has the stand-ins of Triton and the others."""
    start_stubs.write(tmp_path / "packages")
    (tmp_path / "compiles").touch()
    return {
        "PYTHONPATH": os.pathsep.join([str(PACKAGE), str(tmp_path / "packages")]),
        "STUB_COMPILES": str(tmp_path / "compiles"),
        "KILN_CACHE_DIR": str(tmp_path / "kiln"),
        "PYTHONHASHSEED": "0",
    }


def compiles(stubs: dict[str, str]) -> int:
    return len(Path(stubs["STUB_COMPILES"]).read_text().splitlines())


def test_gpu_5_a_crowd_compiles_each_kernel_once(peers: list[Peer], stubs: dict[str, str]) -> None:
    """168 compiles for 34, without claims."""
    peers += [Peer(CROWD, **stubs) for _ in range(8)]
    for peer in peers:
        assert peer.hear() == "ready"
    for peer in peers:
        peer.go()
    said = [peer.end().split() for peer in peers]
    assert len({word for word, _ in said}) == 1  # all have the same bytes, of the same process
    assert [word for _, word in said] == ["0"] * 8
    assert 16 <= compiles(stubs) <= 1.2 * 16


FAILS = """
import _kiln_start
from triton.compiler import ASTSource, CompilationError, compile
try:
    compile(ASTSource("kernel", fails={fails!r}))
    print("made")
except CompilationError as error:
    kept = error  # with its traceback, and what lies in its frames
    print("failed")
import kiln
print(kiln.default_cache().stats()["wait_timeouts"])
sys.stdin.readline()
"""


def test_nobody_waits_for_a_compile_that_failed(peers: list[Peer], stubs: dict[str, str]) -> None:
    peers += [Peer(FAILS.format(fails="llir"), **stubs)]
    assert peers[0].hear() == "failed" and peers[0].hear() == "0"
    peers += [Peer(FAILS.format(fails=None), **stubs)]
    assert peers[1].hear() == "made" and peers[1].hear() == "0"  # while the first one is there
    assert compiles(stubs) == 2


def test_an_unknown_triton_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    _entries._said.clear()
    triton.share(types.ModuleType("triton.compiler.compiler"))
    assert "no function compile" in caplog.text


def test_install_finds_what_was_imported_before(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("triton", "triton.compiler", "triton.compiler.compiler", "triton.runtime.cache")
    modules = {name: types.ModuleType(name) for name in names}

    def compile(src: Any) -> Any:
        return _claims.innermost()

    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
        if name != "triton.runtime.cache":
            module.compile = compile  # type: ignore[attr-defined]
    triton.install(modules["triton.runtime.cache"])
    triton.install(modules["triton.runtime.cache"])
    assert all(modules[name].compile(None) is not None for name in names[:3])  # type: ignore[attr-defined]
    assert _claims.innermost() is None


# --- Inductor and JAX ---------------------------------------------------------------------------------------------


def spanned(share: Any, name: str, body: Any) -> Any:
    """The function of another project's that asks and puts, after `share`."""
    module = types.ModuleType("other")
    setattr(module, name, body)
    share(module)
    return getattr(module, name)


def claimed() -> Optional[bool]:
    span = _claims.innermost()
    return None if span is None else span.claim is not None


@pytest.fixture
def torch_backend(monkeypatch: pytest.MonkeyPatch) -> Any:
    module = types.ModuleType("torch._inductor.remote_cache")
    module.RemoteCacheBackend = type("RemoteCacheBackend", (), {})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for name in ("torch", "torch._inductor"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.delitem(sys.modules, "torch.distributed", raising=False)
    return inductor.backend


def test_a_graph_is_claimed_from_its_lookup_to_its_put(torch_backend: Any) -> None:
    def inner(graph: Any, puts: bool) -> Any:
        backend = torch_backend(claims=True)
        found = backend._get(graph)
        if found is None:
            assert claimed()
            assert torch_backend()._get("a result that is measured") is None
            assert claimed()
            if puts:
                backend._put(graph, b"compiled")
                assert claimed() is False
        return found

    compile = spanned(inductor.share, "_compile_fx_inner", inner)
    assert compile("graph", puts=False) is None  # its result is not for the cache
    assert compile("graph", puts=True) is None and compile("graph", puts=True) == b"compiled"
    assert torch_backend(claims=True)._get("outside of it") is None and claimed() is None
    stats = kiln.default_cache().stats()
    assert (stats["compiles"], stats["puts"]) == (1, 1)


def test_ranks_of_one_job_claim_no_graph(torch_backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compile may have a collective in it, in which the rank that compiles would wait for the one that waits for it."""
    distributed = types.ModuleType("torch.distributed")
    started = [False]
    distributed.is_available = lambda: True  # type: ignore[attr-defined]
    distributed.is_initialized = lambda: started[0]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, distributed.__name__, distributed)

    def inner(graph: Any) -> Any:
        torch_backend(claims=True)._get(graph)
        return claimed()

    compile = spanned(inductor.share, "_compile_fx_inner", inner)
    assert compile("graph") is True
    started[0] = True
    assert compile("graph") is False


def test_jax_claims_where_everything_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    config = types.SimpleNamespace(jax_persistent_cache_min_compile_time_secs=0, jax_persistent_cache_min_entry_size_bytes=0)
    cache = jax.CompilationCache(config=config)

    def inner(key: str, puts: bool = True) -> Any:
        if cache.get(key) is not None:
            return "found"
        answer = claimed()
        if puts:
            cache.put(key, b"executable")
        return answer

    compile = spanned(jax.share, "compile_or_get_cached", inner)
    assert compile("key", puts=False) is True
    assert compile("key") is True and compile("key") == "found"
    config.jax_persistent_cache_min_compile_time_secs = 1.0  # the others would wait for what is not stored
    assert compile("short") is False
    config.jax_persistent_cache_min_compile_time_secs = 0
    config.jax_persistent_cache_min_entry_size_bytes = 64
    assert compile("small") is False
    config.jax_persistent_cache_min_entry_size_bytes = 0
    job = types.ModuleType("jax._src.distributed")
    job.global_state = types.SimpleNamespace(client=object())  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, job.__name__, job)
    assert compile("of a job") is False
