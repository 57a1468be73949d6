"""The command: ``python -m kiln`` is ``kiln``."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Optional

from kiln._library import NATIVE


def find_command() -> Optional[str]:
    """The command that belongs to the library: the wheel's own, else the system's."""
    own = NATIVE / "bin" / "kiln"
    return str(own) if own.exists() else shutil.which("kiln")


def main() -> int:
    """Takes this process's place with the command; never returns but without one."""
    command = find_command()
    if command is None:
        print("kiln: the command is not installed (install the package kiln, or kiln's wheel)", file=sys.stderr)
        return 127
    os.execv(command, ["kiln", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
