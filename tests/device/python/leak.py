"""Shared by the programs here: whether a Python without kiln that a program starts under `kiln exec` is as it is alone."""

import os
import subprocess
import sys

BEFORE = dict(os.environ)

#: kiln.pth is not read, and kiln cannot be imported: another environment's Python, Ray's, submitit's.
WITHOUT_KILN = """
import os, site, sys
sys.path += site.getsitepackages() + [place for place in os.environ.get("EXTRA_PATH", "").split(":") if place]
sys.modules["kiln"] = None
"""


def check(program: str) -> str:
    """What the program prints in such a Python; fails if this process changed what its children inherit."""
    changed = {name for name in {*BEFORE, *os.environ} if BEFORE.get(name) != os.environ.get(name)}
    ours = {name for name in changed if "KILN" in name or "CACHE_MANAGER" in name or "REMOTE_CACHE" in name}
    assert not ours, ours
    extra = ":".join(place for place in sys.path if place.endswith("-packages"))
    ran = subprocess.run(
        [sys.executable, "-S", "-c", WITHOUT_KILN + program],
        env={**os.environ, "EXTRA_PATH": extra},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def skip_without(name: str) -> None:
    """Leaves with 77 where a package is not installed."""
    try:
        __import__(name)
    except ImportError as error:
        print(f"no {name}: {error}")
        sys.exit(77)
