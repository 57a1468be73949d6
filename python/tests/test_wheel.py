"""The wheel, made of the build that is tested, in an empty virtual environment and an empty home."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import kiln

ROOT = Path(__file__).resolve().parents[2]


def run(*command: Any, **variables: str) -> str:
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_CACHE_HOME") if name in os.environ}
    ran = subprocess.run(
        [str(word) for word in command],
        env={**environment, **variables},
        cwd="/",  # where no source of the package lies
        capture_output=True,
        text=True,
        timeout=150,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.strip()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = os.environ.get("KILN_TEST_BUILD", "")
    if not build:
        pytest.skip("KILN_TEST_BUILD does not name a build")
    for tool in ("patchelf", "readelf", "cmake", "dpkg-query"):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool}")
    place = tmp_path_factory.mktemp("wheel")
    run("cmake", "--install", build, "--prefix", place / "tree", "--strip")
    run(sys.executable, ROOT / "scripts/wheel.py", place / "tree", place, 1)
    (made,) = place.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def venv(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("venv")
    made = subprocess.run([sys.executable, "-m", "venv", str(place)], capture_output=True, text=True)
    if made.returncode != 0:
        pytest.skip("no venv (install python3-venv)")
    run(place / "bin/python", "-m", "pip", "install", "--no-index", "--quiet", wheel)
    return place


def test_its_tag_is_what_it_needs(wheel: Path) -> None:
    """The newest symbol of glibc that any file asks for."""
    name, tag = wheel.name.split("-py3-none-")
    assert name == f"kiln_cache-{kiln.__version__}"  # PyPI's `kiln` is another project
    assert 'name = "kiln-cache"' in (ROOT / "python/pyproject.toml").read_text()
    assert tag.startswith("manylinux_2_")
    minor = int(tag.split("_")[2])
    needed = set()
    for file in wheel.parent.joinpath("stage/kiln/native").rglob("*"):
        if file.is_file() and file.open("rb").read(4) == b"\x7fELF":
            said = run("readelf", "--version-info", "--wide", file)
            needed |= {int(word[8:].split(".")[0]) for word in said.split() if word.startswith("GLIBC_2.")}
            allowed = ("libc.", "libm.", "libgcc_s.", "libstdc++.", "ld-linux", "libkiln", "libcurl.so.4")
            for library in run("patchelf", "--print-needed", file).split():
                assert library.startswith(allowed), f"{file.name} needs {library}"
    assert max(needed) <= minor


def test_it_is_the_same_each_time_and_whole(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        assert archive.testzip() is None
        record = archive.read(next(name for name in names if name.endswith("RECORD"))).decode()
    assert names == [line.split(",")[0] for line in record.splitlines()]
    assert "kiln.pth" in names and "kiln/py.typed" in names and not [name for name in names if "__pycache__" in name]


def test_it_works_from_an_empty_home(venv: Path, home: Path) -> None:
    program = """
import kiln
source = kiln.Source("c", "#include <kiln_kernel.h>\\nKILN_KERNEL(one, KILN_INOUT(int, x)) { KILN_ITEMS_X(i) { x[i] = 1; } }")
runtime = kiln.Runtime(backend="cpu")
print(runtime.select(source).build(source).info.origin, kiln.default_cache().root)
"""
    origins = [run(venv / "bin/python", "-c", program) for _ in range(2)]
    assert origins == [f"compiled {home}/kiln", f"disk {home}/kiln"]


def test_its_command(venv: Path) -> None:
    assert run(venv / "bin/kiln", "version") == run(venv / "bin/python", "-m", "kiln", "version")


def test_kiln_exec_switches_the_adapters_on(venv: Path) -> None:
    program = "import sys; print('_kiln_start' in sys.modules)"
    python = venv / "bin/python"
    assert run(venv / "bin/kiln", "exec", "--", python, "-c", program) == "True"
    assert run(venv / "bin/kiln", "exec", "--no-python", "--", python, "-c", program) == "False"
    assert run(python, "-c", program) == "False"
