"""The command of the wheel: ``kiln`` and ``python -m kiln``. It imports nothing of the package, and so costs little more than
the start of a Python."""

import os
import sys


def find_command() -> str:
    """The command that belongs to the package: the wheel's own, else the system's; ``""`` if there is none."""
    own = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kiln", "native", "bin", "kiln")
    if os.path.exists(own):
        return own
    import shutil

    return shutil.which("kiln") or ""


def main() -> int:
    """Takes this process's place with the command; never returns but without one."""
    command = find_command()
    if not command:
        print("kiln: the command is not installed (install the package kiln, or kiln's wheel)", file=sys.stderr)
        return 127
    os.execv(command, ["kiln", *sys.argv[1:]])
