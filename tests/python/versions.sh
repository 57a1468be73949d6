#!/bin/sh
# versions.sh FILE…: files of python/tests with every other CPython from 3.9 on that is installed, in PATH or by pyenv. One that
# cannot import the pytest of the first Python that has it runs the examples in the package's documentation instead. 77 where
# there is no other.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root/python"
export PYTHONDONTWRITEBYTECODE=1

suite=
for python in python3 /usr/bin/python3; do
    if suite=$("$python" -c 'import os, pytest; print(os.path.dirname(os.path.dirname(pytest.__file__)))' 2>/dev/null); then
        break
    fi
done
own=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')

# Only what pytest needs: other packages there may be built for another version.
pytest=$(mktemp -d)
trap 'rm -rf "$pytest"' EXIT
for name in pytest _pytest pluggy iniconfig packaging exceptiongroup tomli attr py.py py; do
    if [ -e "$suite/$name" ]; then
        ln -s "$suite/$name" "$pytest/$name"
    fi
done

examples='
import doctest, importlib, pkgutil, kiln
for module in pkgutil.iter_modules(kiln.__path__, "kiln."):
    if module.name != "kiln.__main__":
        told = doctest.testmod(importlib.import_module(module.name), optionflags=doctest.ELLIPSIS)
        assert told.failed == 0, module.name
'
ran=
for minor in 9 10 11 12 13; do
    [ "3.$minor" != "$own" ] || continue
    for place in "$(command -v "python3.$minor" || true)" "${PYENV_ROOT:-$HOME/.pyenv}/versions/3.$minor".*/bin/python3; do
        # A shim of pyenv is there for versions that are not chosen, and runs none.
        told=$("$place" -c 'import ctypes, sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
        [ "$told" = "3.$minor" ] || continue
        echo "== $place"
        if PYTHONPATH="$pytest" "$place" -W ignore -c 'import pytest' 2>/dev/null; then
            PYTHONPATH="$root/python:$pytest" "$place" -W ignore -m pytest -q -p no:cacheprovider "$@"
        else
            echo "no pytest: the examples"
            PYTHONPATH="$root/python" "$place" -c "$examples"
        fi
        ran="$ran 3.$minor"
        break
    done
done
[ -n "$ran" ] || { echo "SKIP: no other CPython (install one with pyenv)" && exit 77; }
echo "ran$ran"
