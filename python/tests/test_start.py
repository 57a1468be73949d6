"""What a Python does at its start under kiln exec, with packages of stand-ins on its path."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable

import pytest
from conftest import PACKAGE

import kiln


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """torch, jax and triton, as far as their caches go."""
    place = tmp_path / "packages"
    for name in ("torch", "torch/_inductor", "jax", "jax/_src", "triton", "triton/runtime"):
        (place / name).mkdir(parents=True)
        (place / name / "__init__.py").write_text("")
    names = ["RemoteFxGraphCache", "RemoteAOTAutogradCache", "RemoteAutotuneCache"]
    classes = "".join(f"class {name}:\n    backend_override_cls = None\n" for name in names)
    (place / "torch/_inductor/remote_cache.py").write_text(classes)
    (place / "triton/runtime/cache.py").write_text("class CacheManager: pass\nclass RemoteCacheBackend: pass\n")
    (place / "jax/_src/compilation_cache.py").write_text("def get_file_cache(path):\n    return None\n")
    (place / "jax/_src/config.py").write_text(
        "class config:\n    jax_compilation_cache_dir = None\n"
        "    @classmethod\n    def update(cls, name, value):\n        setattr(cls, name, value)\n"
    )
    return place


def run(packages: Path, program: str, **variables: str) -> str:
    environment = {**os.environ, "PYTHONPATH": f"{PACKAGE}:{packages}", **variables}
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


#: What kiln.pth does: site runs it before the program.
PTH = (PACKAGE / "kiln.pth").read_text()

ASK = (
    PTH
    + """
import sys
early = [name for name in sys.modules if name.split(".")[0] in ("torch", "jax", "triton", "kiln")]
import torch._inductor.remote_cache as inductor
import jax._src.compilation_cache as cache
import triton.runtime.cache
from jax._src.config import config
print(early, inductor.RemoteFxGraphCache.backend_override_cls is not None, cache.get_file_cache.__module__,
      config.jax_compilation_cache_dir is not None, os.environ.get("TRITON_CACHE_MANAGER"), sep="|")
"""
)


def test_adapters_go_in_when_they_are_wanted(packages: Path) -> None:
    told = run(packages, ASK, KILN_PYTHON="1").strip().split("|")
    assert told == ["[]", "True", "kiln.jax", "True", "kiln.triton:CacheManager"]


@pytest.mark.parametrize("variables", [{}, {"KILN_PYTHON": "1", "KILN_DISABLE": "1"}])
def test_and_not_otherwise(packages: Path, variables: dict[str, str]) -> None:
    told = run(packages, ASK, **variables).strip().split("|")
    assert told[1:] == ["False", "jax._src.compilation_cache", "False", "None"]


def test_an_adapter_that_cannot_be_imported_is_left_out(packages: Path) -> None:
    """Triton would fail on a manager that it cannot import."""
    (packages / "kiln").mkdir()
    (packages / "kiln" / "__init__.py").write_text("raise ImportError('no libkiln')\n")
    program = PTH + "\nimport os, torch._inductor.remote_cache, triton.runtime.cache\nprint(os.environ.get('TRITON_CACHE_MANAGER'))"
    (packages / "_kiln_start.py").write_text((PACKAGE / "_kiln_start.py").read_text())
    environment = {**os.environ, "PYTHONPATH": str(packages), "KILN_PYTHON": "1"}
    ran = subprocess.run([sys.executable, "-c", program], env=environment, cwd=packages, capture_output=True, text=True)
    assert ran.stdout.strip() == "None", ran.stderr


def test_a_package_that_cannot_be_imported_harms_nobody(packages: Path) -> None:
    (packages / "_kiln_start.py").write_text("raise RuntimeError('broken')\n")
    environment = {**os.environ, "PYTHONPATH": str(packages), "KILN_PYTHON": "1"}
    command = [sys.executable, "-c", PTH + "\nprint('runs')"]
    ran = subprocess.run(command, env=environment, cwd=packages, capture_output=True, text=True)
    assert ran.stdout.strip() == "runs"


def test_the_pth_is_one_line_that_site_runs() -> None:
    assert PTH.startswith("import ") and PTH.count("\n") == 1
