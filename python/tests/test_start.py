"""What a Python does at its start under kiln exec, with packages of stand-ins on its path."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
import start_stubs
from conftest import PACKAGE


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """torch, jax and triton, as far as their caches go."""
    start_stubs.write(tmp_path / "packages")
    return tmp_path / "packages"


def run(packages: Path, program: str, *path: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A program in a Python that has the packages, and `path` (default: kiln's)."""
    places = ":".join(map(str, (*(path or (PACKAGE,)), packages)))
    environment = {**os.environ, "PYTHONPATH": places, "PACKAGES": str(packages), **variables}
    command = [sys.executable, "-c", program]
    ran = subprocess.run(command, env=environment, cwd=packages, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    return ran


#: What kiln.pth does: site runs it before the program.
PTH = (PACKAGE / "kiln.pth").read_text()

#: What became of each package.
TELL = """
import torch._inductor.remote_cache as inductor
import jax._src.compilation_cache as cache
import torch._inductor.config as switches, torch._functorch.config as more
from triton.runtime.cache import get_cache_manager
from jax._src.config import config
print(inductor.RemoteFxGraphCache.backend_override_cls is not None, cache.get_file_cache.__module__,
      config.jax_compilation_cache_dir is not None, type(get_cache_manager("AB")).__module__,
      switches.fx_graph_remote_cache, switches.autotune_remote_cache, switches.bundled_autotune_remote_cache,
      more.enable_remote_autograd_cache)
"""

ADAPTED = "True kiln.jax True kiln.triton True True True True"
ALONE = "False jax._src.compilation_cache False triton.runtime.cache None None None None"


@pytest.fixture(params=["knobs", "before knobs"])
def tritons(packages: Path, request: pytest.FixtureRequest) -> Path:
    """The packages, with either Triton."""
    if request.param != "knobs":
        (packages / "triton/runtime/cache.py").write_text(start_stubs.OLD_TRITON)
    return packages


def test_adapters_go_in_when_they_are_wanted(tritons: Path) -> None:
    early = "\nimport sys; print([name for name in sys.modules if name.split('.')[0] in ('torch', 'jax', 'triton', 'kiln')])\n"
    assert run(tritons, PTH + early + TELL, KILN_PYTHON="1").stdout.splitlines() == ["[]", ADAPTED]


@pytest.mark.parametrize("variables", [{}, {"KILN_PYTHON": "1", "KILN_DISABLE": "1"}])
def test_and_not_otherwise(tritons: Path, variables: dict[str, str]) -> None:
    assert run(tritons, PTH + "\n" + TELL, **variables).stdout.strip() == ALONE


def test_a_child_without_kiln_is_as_it_is_alone(tritons: Path) -> None:
    """Another environment's Python, Ray's, submitit's: Triton failed there on a manager that it could not import, and
    Inductor looked for a Redis."""
    program = f"""
import os
before = dict(os.environ)
{TELL}
print(sorted(name for name in {{*before, *os.environ}} if before.get(name) != os.environ.get(name)), flush=True)
import subprocess, sys
inherited = {{**os.environ, "PYTHONPATH": os.environ["PACKAGES"]}}
subprocess.run([sys.executable, "-c", {TELL!r}], check=True, env=inherited)
"""
    assert run(tritons, PTH + program, KILN_PYTHON="1").stdout.splitlines() == [ADAPTED, "[]", ALONE]


def test_what_the_user_set_stays(tritons: Path) -> None:
    (tritons / "mine.py").write_text("from triton.runtime.cache import CacheManager\nclass Mine(CacheManager): pass\n")
    variables = {"TRITON_CACHE_MANAGER": "mine:Mine", "TORCHINDUCTOR_FX_GRAPH_REMOTE_CACHE": "0"}
    told = run(tritons, PTH + TELL, KILN_PYTHON="1", **variables).stdout.strip()
    assert told == "True kiln.jax True mine False True True True"


def test_without_libkiln_nothing_is_switched_on(tritons: Path) -> None:
    place = tritons.parent / "broken"
    (place / "kiln").mkdir(parents=True)
    (place / "kiln/__init__.py").write_text("raise ImportError('no libkiln')\n")
    for name in ("_kiln_start.py", "_kiln_adapt.py"):
        (place / name).write_text((PACKAGE / name).read_text())
    ran = run(tritons, PTH + TELL, place, KILN_PYTHON="1")
    assert ran.stdout.strip() == ALONE and ran.stderr.count("no libkiln") == 3


def test_a_triton_that_cannot_be_adapted_works_as_alone(packages: Path) -> None:
    text = start_stubs.OLD_TRITON.replace("__cache_cls", "_class_of_another_version")
    (packages / "triton/runtime/cache.py").write_text(text)
    (packages / "triton/__init__.py").write_text("__version__ = '9.9'\n")
    (packages / "triton/knobs.py").unlink()
    ran = run(packages, PTH + TELL, KILN_PYTHON="1")
    assert ran.stdout.strip() == ADAPTED.replace("kiln.triton", "triton.runtime.cache") and "triton 9.9" in ran.stderr


def test_a_package_that_cannot_be_imported_harms_nobody(packages: Path) -> None:
    place = packages.parent / "broken"
    place.mkdir()
    (place / "_kiln_start.py").write_text("raise RuntimeError('broken')\n")
    assert run(packages, PTH + "\nprint('runs')", place, KILN_PYTHON="1").stdout.strip() == "runs"


def test_modules_have_their_own_loaders(packages: Path) -> None:
    """Resources, pkgutil and reload ask the loader; finders that were there before are asked as well."""
    program = """
import importlib, importlib.abc, importlib.machinery, sys
asked = []

class Theirs(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        asked.append(name)

sys.meta_path.insert(1, Theirs())
import triton.runtime.cache as cache
own = importlib.machinery.SourceFileLoader
print(type(cache.__loader__) is own, type(cache.__spec__.loader) is own, "triton.runtime.cache" in asked)
cache = importlib.reload(cache)
print(type(cache.__loader__) is own, type(cache.get_cache_manager("AB")).__module__, "FileCacheManager" in cache.__loader__.get_source(cache.__name__))
"""
    told = run(packages, PTH + program, KILN_PYTHON="1").stdout.splitlines()
    assert told == ["True True True", "True kiln.triton True"]


def test_the_start_imports_nothing_that_python_has_not(packages: Path) -> None:
    """Every Python under kiln exec pays for it."""
    program = "import sys; before = set(sys.modules)\n" + PTH + "\nprint(sorted(set(sys.modules) - before), len(sys.meta_path))"
    assert run(packages, program, KILN_PYTHON="1").stdout.startswith("['_kiln_start']")
    isolated = f"import sys; sys.path.insert(0, {str(PACKAGE)!r})\n" + program
    command = [sys.executable, "-I", "-S", "-c", isolated]
    ran = subprocess.run(command, env={**os.environ, "KILN_PYTHON": "1"}, capture_output=True, text=True, timeout=60)
    assert set(ran.stdout.split("]")[0].strip("[").replace("'", "").split(", ")) <= {"_kiln_start", *BY_SITE}, ran.stdout


def test_site_runs_the_line() -> None:
    """It adds one module and one finder, and no directory that the path does not have."""
    program = f"""
import site, sys
site.addsitedir({str(PACKAGE)!r})
print([list(sys.modules), list(sys.path_importer_cache), len(sys.meta_path), sys.path])
"""
    seen = []
    for variables in ({}, {"KILN_PYTHON": "1"}):
        command = [sys.executable, "-I", "-S", "-c", program]
        environment = {**os.environ, **variables}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=True)
        seen.append(ast.literal_eval(ran.stdout))
    (modules, paths, finders, path), (more, longer, one_more, _) = seen
    assert set(more) - set(modules) == {"_kiln_start"} and one_more == finders + 1
    assert set(longer) - set(paths) <= {str(PACKAGE), *path}


#: What site imports before it comes to kiln.pth.
BY_SITE = ("os", "os.path", "posixpath", "genericpath", "stat", "_stat", "_collections_abc", "abc", "_abc", "io", "codecs")


def test_without_the_variable_nothing_is_imported(packages: Path) -> None:
    assert run(packages, PTH + "\nimport sys; print('_kiln_start' in sys.modules)").stdout.strip() == "False"


def test_the_pth_is_one_line_that_site_runs() -> None:
    assert PTH.startswith("import ") and PTH.count("\n") == 1
