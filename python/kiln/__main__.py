"""The command: ``python -m kiln`` is ``kiln``."""

import sys

from _kiln_command import main

if __name__ == "__main__":
    sys.exit(main())
