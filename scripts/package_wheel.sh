#!/bin/sh
# package_wheel.sh [DIRECTORY]: Python's wheel, in DIRECTORY (default build/wheel): the package of python/kiln, and in it
# the library, its helpers and the command, from a release build that knows no directory of this machine.
set -eu
cd "$(dirname "$0")/.."
out=${1:-build/wheel}
mkdir -p "$out"
out=$(cd "$out" && pwd)
launcher=
! command -v ccache >/dev/null 2>&1 || launcher=-DCMAKE_C_COMPILER_LAUNCHER=ccache
{
    # shellcheck disable=SC2086
    cmake -S . -B "$out/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DKILN_REPRODUCIBLE=ON -DKILN_WERROR=OFF \
        -DKILN_TESTS=OFF -DKILN_BENCH=OFF -DCMAKE_INSTALL_LIBDIR=lib $launcher
    cmake --build "$out/build" -j "${KILN_JOBS:-$(nproc)}"
    rm -rf "$out/tree" "$out"/*.whl
    cmake --install "$out/build" --prefix "$out/tree" --strip
} >"$out/log" 2>&1 || {
    tail -n 40 "$out/log" >&2
    echo "the whole log is $out/log" >&2
    exit 1
}
python3 scripts/wheel.py "$out/tree" "$out"
