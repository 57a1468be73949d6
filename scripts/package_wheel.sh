#!/bin/sh
# package_wheel.sh [DIRECTORY]: Python's wheel, in DIRECTORY (default build/wheel): the package of python/kiln, and in it
# the library, its helpers and the command, from a release build that knows no directory of this machine. It is then
# tried: in a virtual environment, and as a copy of what that has installed.
set -eu
cd "$(dirname "$0")/.."
here=$PWD
out=${1:-build/wheel}
mkdir -p "$out"
out=$(cd "$out" && pwd)
launcher=
! command -v ccache >/dev/null 2>&1 || launcher=-DCMAKE_C_COMPILER_LAUNCHER=ccache
{
    # shellcheck disable=SC2086
    cmake --preset release -B "$out/build" -DKILN_REPRODUCIBLE=ON -DKILN_WERROR=OFF \
        -DKILN_TESTS=OFF -DKILN_BENCH=OFF -DCMAKE_INSTALL_LIBDIR=lib $launcher &&
    cmake --build "$out/build" -j "${KILN_JOBS:-$(nproc)}" &&
    rm -rf "$out/tree" "$out"/*.whl &&
    cmake --install "$out/build" --prefix "$out/tree" --strip
} >"$out/log" 2>&1 || {
    tail -n 40 "$out/log" >&2
    echo "the whole log is $out/log" >&2
    exit 1
}
python3 scripts/wheel.py "$out/tree" "$out"

scripts/installed_parts.sh "$out/parts"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --no-index --disable-pip-version-check "$out"/kiln_cache-*.whl
} >>"$out/log" 2>&1 || {
    tail -n 40 "$out/log" >&2
    exit 1
}
unset KILN_LIBEXEC LD_LIBRARY_PATH PYTHONPATH
cd "$work"
export HOME="$work" KILN_CACHE_DIR="$work/cache" KILN_BACKEND=cpu
echo "== the commands"
cp "$here/kernels/c/saxpy.c" .
for words in version devices "compile saxpy.c -b cpu" ls stats verify "doctor -b cpu" "pack create all.kpack" "pack list all.kpack" \
    "prune --max-age 1d" "key generate key.pem" "completion bash" "help exec"; do
    # shellcheck disable=SC2086
    venv/bin/kiln $words >out.txt 2>&1 </dev/null || { cat out.txt; echo "kiln $words failed"; exit 1; }
done
venv/bin/python -c 'import kiln; print(bytes(kiln.Cache().get_or_compile(kiln.Recipe("wheel"), lambda: b"made")))'
unset KILN_CACHE_DIR KILN_BACKEND
echo "== under kiln exec, in a virtual environment"
python3 "$here/tests/integration/installed_exec.py" "$work/venv/bin/kiln" "$out/parts"
echo "== a copy of it, and the environment is gone"
cp -R "$(find venv/lib -path '*/kiln/native' -type d | head -n 1)" copied
rm -rf venv
python3 "$here/tests/integration/installed_exec.py" "$work/copied/bin/kiln" "$out/parts"
