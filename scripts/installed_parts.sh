#!/bin/sh
# installed_parts.sh DIRECTORY: builds the programs that tests/integration/installed_exec.py puts an installed kiln under
# (release preset), and gathers them in DIRECTORY.
set -eu
cd "$(dirname "$0")/.."
launcher=
! command -v ccache >/dev/null 2>&1 || launcher=-DCMAKE_C_COMPILER_LAUNCHER=ccache
mkdir -p "$1"
{
    # shellcheck disable=SC2086
    cmake --preset release $launcher &&
    cmake --build --preset release -j "${KILN_JOBS:-$(nproc)}" --target kiln kiln_libexec kiln_installed_parts
} >"$1/log" 2>&1 </dev/null || {
    tail -n 40 "$1/log" >&2
    echo "the whole log is $1/log" >&2
    exit 1
}
python3 tests/integration/installed_exec.py --collect build/release "$1"
