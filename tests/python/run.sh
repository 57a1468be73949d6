#!/bin/sh
# run.sh FILE…: pytest on files of python/tests, with the first Python that has pytest. Nothing is written to
# the source tree. CTest sets where the library and its helpers are.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
for python in python3 /usr/bin/python3; do
    if "$python" -c 'import pytest' 2>/dev/null; then
        cd "$root/python"
        export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$root/python"
        exec "$python" -m pytest -q -p no:cacheprovider -rs "$@"
    fi
done
echo "SKIP: no Python with pytest (install python3-pytest)"
exit 77
