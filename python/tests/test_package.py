"""The package as a whole: its documentation, its command, what importing it costs."""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import pkgutil
import re
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
    program = "import sys, kiln; print([name for name in sys.modules if name.startswith('kiln.')])"
    loaded = python(program)
    assert "kiln.runtime" not in loaded and "kiln.nvrtc" not in loaded and "numpy" not in loaded


def test_the_command(home: Path) -> None:
    if os.environ.get("KILN_TEST_COMMAND", "") == "":
        pytest.skip("KILN_TEST_COMMAND does not name the command")
    command = Path(os.environ["KILN_TEST_COMMAND"])
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE), "PATH": f"{command.parent}:{os.environ['PATH']}"}
    ran = subprocess.run([sys.executable, "-m", "kiln", "version"], env=environment, capture_output=True, text=True)
    assert ran.returncode == 0 and kiln.__version__ in ran.stdout
    wrong = subprocess.run([sys.executable, "-m", "kiln", "brew"], env=environment, capture_output=True, text=True)
    assert wrong.returncode == 2 and "brew" in wrong.stderr
