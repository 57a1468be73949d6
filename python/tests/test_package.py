"""The package as a whole: its documentation, its command, what importing it costs."""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import pkgutil
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
from conftest import PACKAGE

import kiln

MODULES = sorted(module.name for module in pkgutil.iter_modules(kiln.__path__, "kiln.") if module.name != "kiln.__main__")

@pytest.mark.parametrize("name", ["kiln", *MODULES])
def test_examples_run(name: str) -> None:
    ran = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert ran.failed == 0


def public() -> Iterator[tuple[str, Any]]:
    for name in kiln.__all__:
        if not name.startswith("__"):
            yield name, getattr(kiln, name)
    for name in MODULES:
        module = importlib.import_module(name)
        if not name.split(".")[-1].startswith("_"):
            for member, value in vars(module).items():
                if getattr(value, "__module__", "") == name and not member.startswith("_"):
                    yield f"{name}.{member}", value


def test_everything_public_is_documented() -> None:
    for name, value in public():
        assert inspect.getdoc(value), name
        if inspect.isclass(value):
            for member, what in vars(value).items():
                if callable(what) and not member.startswith("_"):
                    assert inspect.getdoc(getattr(value, member)), f"{name}.{member}"


def test_sections_are_underlined_as_numpy_does() -> None:
    for path in Path(kiln.__file__).parent.glob("*.py"):
        lines = path.read_text().splitlines()
        for number, line in enumerate(lines):
            if re.fullmatch(r" +(Parameters|Returns|Raises|Notes|Examples|Attributes)", line):
                assert lines[number + 1].strip() == "-" * len(line.strip()), f"{path.name}:{number + 1}"


def test_level_one_imports_nothing_of_the_other_levels(python: Callable[..., str]) -> None:
    program = "import sys, typing, ctypes, threading, weakref; before = set(sys.modules)\nimport kiln; print(*set(sys.modules) - before)"
    level_one = "_flight _handle _library _numbers _structs blob cache errors recipe".split()
    loaded = {name for name in python(program).split() if name.partition(".")[0] in ("kiln", "numpy") or name in SLOW}
    assert loaded == {"kiln", *(f"kiln.{name}" for name in level_one)}


#: Modules that take longer to import than all of level 1.
SLOW = ("asyncio", "dataclasses", "inspect", "json", "logging", "pathlib", "subprocess", "tempfile", "urllib")


def test_the_command_imports_nothing_of_the_package(python: Callable[..., str], home: Path) -> None:
    program = """
import os, sys
before = set(sys.modules)
import _kiln_command
os.path.exists = lambda path: True  # the wheel's own command
assert _kiln_command.find_command().endswith("kiln/native/bin/kiln")
print(*set(sys.modules) - before)
"""
    assert python(program).split() == ["_kiln_command"]


def test_all_public_names_are_listed(python: Callable[..., str]) -> None:
    assert {"Runtime", "Explanation", "nvrtc", "Cache"} <= set(python("import kiln; print(*dir(kiln))").split())


def test_its_version_is_the_headers() -> None:
    header = PACKAGE.parent / "include/kiln/version.h"
    if not header.exists():
        pytest.skip("no headers: not a source tree")
    assert f'#define KILN_VERSION "{kiln.__version__}"' in header.read_text()


@pytest.mark.parametrize("version, taken", [("0.1.7", True), ("0.2.0", False), ("0.10.0", False), ("1.1.0", False)])
def test_another_libkiln_is_refused(home: Path, tmp_path: Path, version: str, taken: bool) -> None:
    """Functions of another version would be called as if they were this one's."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    (tmp_path / "fake.c").write_text(f'const char *kiln_version(void) {{ return "{version}"; }}\n')
    command = ["cc", "-shared", "-fPIC", tmp_path / "fake.c", "-o", tmp_path / "libkiln.so.0"]
    subprocess.run(command, check=True)
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "LD_LIBRARY_PATH": str(tmp_path)}
    program = "import kiln._library"
    # The package itself wants more of libkiln than its version.
    program = f"import sys, types; sys.modules['kiln'] = p = types.ModuleType('kiln'); p.__path__ = [{str(PACKAGE / 'kiln')!r}]\n" + program
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert (ran.returncode == 0) is taken, ran.stderr
    assert taken or (version in ran.stderr and kiln.__version__ in ran.stderr and "install the same version" in ran.stderr)


def test_the_command(home: Path) -> None:
    if os.environ.get("KILN_TEST_COMMAND", "") == "":
        pytest.skip("KILN_TEST_COMMAND does not name the command")
    command = Path(os.environ["KILN_TEST_COMMAND"])
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "PATH": f"{command.parent}:{os.environ['PATH']}"}
    ran = subprocess.run([sys.executable, "-m", "kiln", "version"], env=environment, capture_output=True, text=True)
    assert ran.returncode == 0 and kiln.__version__ in ran.stdout
    wrong = subprocess.run([sys.executable, "-m", "kiln", "brew"], env=environment, capture_output=True, text=True)
    assert wrong.returncode == 2 and "brew" in wrong.stderr
