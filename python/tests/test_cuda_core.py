"""kiln.cuda_core against a stand-in of cuda.core 1.2 (Program, ProgramOptions, ObjectCode, make_program_cache_key),
written to its documented signatures; `python/by_hand/adapters.py` runs against the real one."""

from __future__ import annotations

import hashlib
import os
import sys
import types
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterator, Optional, Union

import pytest

import kiln
from kiln import cuda_core


@dataclass
class ProgramOptions:
    name: str = "default_program"
    arch: str = "sm_80"
    include_path: Union[str, list[str], None] = None
    pre_include: Optional[str] = None
    time: Optional[str] = None


@dataclass
class ObjectCode:
    code: bytes
    code_type: str
    name: str = ""
    symbol_mapping: dict[Any, Any] = field(default_factory=dict)

    @staticmethod
    def from_cubin(module: bytes, *, name: str = "", symbol_mapping: Optional[dict[Any, Any]] = None) -> ObjectCode:
        return ObjectCode(module, "cubin", name, symbol_mapping or {})

    from_ptx = from_ltoir = from_cubin


class Program:
    compiles = 0

    def __init__(self, code: str, code_type: str, options: ProgramOptions) -> None:
        self.code, self.code_type, self.options = code, code_type, options

    def compile(self, target_type: str, name_expressions: Any = (), logs: Any = None, *, cache: Any = None) -> ObjectCode:
        Program.compiles += 1
        if "#error" in self.code:
            raise RuntimeError("NVRTC_ERROR_COMPILATION")
        names = {name: f"_Z{len(name)}" for name in name_expressions}
        return ObjectCode(f"{target_type} {Program.compiles}".encode(), target_type, self.options.name, names)


def make_program_cache_key(
    *, code: Any, code_type: str, options: Any, target_type: str, name_expressions: Any = (), extra_digest: Any = None
) -> bytes:
    if options.time is not None:
        raise ValueError("side effects")
    if extra_digest is None and code_type == "c++" and options.include_path:
        raise ValueError("external content")
    parts = (code, code_type, options.name, options.arch, target_type, sorted(map(repr, name_expressions)), extra_digest)
    return hashlib.sha256(repr(parts).encode()).digest()


@pytest.fixture(autouse=True)
def cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if "KILN_TEST_TOOLKIT" not in os.environ:
        pytest.skip("KILN_TEST_TOOLKIT does not name a toolkit")
    monkeypatch.setenv("CUDA_PATH", os.environ["KILN_TEST_TOOLKIT"])
    core, utils = types.ModuleType("cuda.core"), types.ModuleType("cuda.core.utils")
    vars(core).update(Program=Program, ProgramOptions=ProgramOptions, ObjectCode=ObjectCode)
    vars(utils).update(make_program_cache_key=make_program_cache_key)
    for name, module in (("cuda", types.ModuleType("cuda")), ("cuda.core", core), ("cuda.core.utils", utils)):
        monkeypatch.setitem(sys.modules, name, module)
    Program.compiles = 0
    yield


def test_the_mapping(cache: kiln.Cache) -> None:
    with cuda_core.ProgramCache(cache) as programs:
        with pytest.raises(KeyError):
            programs[b"k"]
        assert programs.get("k") is None and programs.get("k", b"-") == b"-"
        programs["k"] = b"cubin"
        assert programs[b"k"] == programs["k"] == b"cubin"
        programs[b"k"] = ObjectCode(b"other", "cubin")
        programs.update({"a": bytearray(b"A"), "b": memoryview(b"B")})
        programs.update([("c", b"C")])
        assert (programs["k"], programs["b"], len(programs)) == (b"other", b"B", 4)
        del programs["k"]
        with pytest.raises(KeyError):
            del programs["k"]
        with pytest.raises(TypeError):
            programs["k"] = "text"
        with pytest.raises(TypeError):
            programs[7]  # type: ignore[index]
        assert not hasattr(programs, "__contains__")
        cache.put(kiln.Recipe("another", 1), b"stays")
        programs.clear()
        assert len(programs) == 0 and programs.get("a") is None
        assert kiln.Recipe("another", 1) in cache


def test_a_path_is_read_when_it_is_stored(cache: kiln.Cache, tmp_path: Path) -> None:
    (tmp_path / "k.cubin").write_bytes(b"cubin")
    programs = cuda_core.ProgramCache(cache)
    programs["k"] = ObjectCode(str(tmp_path / "k.cubin"), "cubin")  # type: ignore[arg-type]
    (tmp_path / "k.cubin").unlink()
    assert programs["k"] == b"cubin"


def test_the_digest_follows_headers(cache: kiln.Cache, tmp_path: Path) -> None:
    for place in ("first", "second", "elsewhere"):
        (tmp_path / place).mkdir()
    (tmp_path / "second" / "a.h").write_text('#include "b.h"\n')
    (tmp_path / "second" / "b.h").write_text("#define B 1\n")
    dirs = [str(tmp_path / "first"), str(tmp_path / "second")]

    def digest(paths: list[str] = dirs) -> bytes:
        return cuda_core.extra_digest("#include <a.h>\n", ProgramOptions(include_path=paths), cache=cache)

    before = digest()
    assert before == digest()
    (tmp_path / "second" / "b.h").write_text("#define B 2\n")
    changed = digest()
    (tmp_path / "first" / "a.h").write_text("#define A\n")
    shadowed = digest()
    assert len({before, changed, shadowed}) == 3
    for name in ("a.h", "b.h"):
        (tmp_path / "elsewhere" / name).write_text((tmp_path / "second" / name).read_text())
    assert digest([str(tmp_path / "elsewhere")]) == changed


def test_headers_that_cannot_be_known(cache: kiln.Cache) -> None:
    with pytest.raises(kiln.UnsupportedError):
        cuda_core.extra_digest("", ProgramOptions(pre_include="x.h"), cache=cache)
    with pytest.raises(kiln.UnsupportedError):
        cuda_core.extra_digest("#include UNKNOWN\n", ProgramOptions(), cache=cache)


def test_headers_next_to_the_source(cache: kiln.Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NVRTC searches the current directory where the program's name has none."""
    (tmp_path / "include").mkdir()
    monkeypatch.chdir(tmp_path)
    digests = set()
    for text in ("#define A 1\n", "#define A 2\n"):
        (tmp_path / "a.h").write_text(text)
        for options in (ProgramOptions(), ProgramOptions(name=str(tmp_path / "k.cu"))):
            digests.add(cuda_core.extra_digest('#include "a.h"\n', options, cache=cache))
    assert len(digests) == 2
    (tmp_path / "include" / "a.h").write_text("#define A 3\n")
    with pytest.raises(kiln.UnsupportedError, match="same name"):
        cuda_core.extra_digest('#include "a.h"\n', ProgramOptions(include_path="include"), cache=cache)


def test_compile_keeps_code_and_names(cache: kiln.Cache, tmp_path: Path) -> None:
    header = tmp_path / "by.h"
    header.write_text("#define BY 1\n")
    options = ProgramOptions(include_path=str(tmp_path), name="scale.cu")

    def compile() -> ObjectCode:
        made: ObjectCode = cuda_core.compile('#include "by.h"\n', "c++", "cubin", options, ["scale<int>", b"x"], cache=cache)
        return made

    first, second = compile(), compile()
    assert Program.compiles == 1 and first == second
    assert second.symbol_mapping == {"scale<int>": "_Z10", b"x": "_Z1"} and second.name == "scale.cu"
    header.write_text("#define BY 2\n")
    assert compile() != first and Program.compiles == 2
    cuda_core.ProgramCache(cache).clear()  # which is of cuda.core's own entries
    assert compile() and Program.compiles == 2


def test_what_no_key_describes_is_compiled(cache: kiln.Cache) -> None:
    for options in (ProgramOptions(time="times"), ProgramOptions(pre_include="x.h")):
        for _ in range(2):
            cuda_core.compile("", "c++", "cubin", options, cache=cache)
    assert Program.compiles == 4
    with pytest.raises(RuntimeError, match="NVRTC_ERROR_COMPILATION"):
        cuda_core.compile("#error", "c++", "cubin", cache=cache)
