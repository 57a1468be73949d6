"""Every test has a home, a cache and an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest

import kiln
from kiln import cache as cache_module

PACKAGE = Path(kiln.__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty home, without a variable of kiln's but where its helpers are."""
    for name in list(os.environ):
        if name.startswith(("KILN_", "TRITON_", "TORCHINDUCTOR_", "JAX_")) and not name.startswith(("KILN_LIBEXEC", "KILN_TEST_")):
            monkeypatch.delenv(name)
    place = tmp_path / "home"
    place.mkdir()
    for name in ("HOME", "XDG_CACHE_HOME", "POCL_CACHE_DIR"):
        monkeypatch.setenv(name, str(place))
    yield place
    default, cache_module._default = cache_module._default, None
    if default is not None:
        default.close()


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[kiln.Cache]:
    """A cache in a directory of its own."""
    with kiln.Cache(tmp_path / "cache") as opened:
        yield opened


@pytest.fixture
def python(home: Path) -> Callable[..., str]:
    """Runs a program in another Python, and gives what it printed."""

    def run(program: str, *args: Any, **variables: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE), **variables}
        command = [sys.executable, "-c", program, *map(str, args)]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    return run
