#!/bin/sh
# package_wheel_arm64.sh [DIRECTORY]: Python's wheel for aarch64, cross-compiled, in DIRECTORY (default build/wheel-arm64).
# Its command, unpacked from the wheel, is then tried under QEMU. build/sysroot/arm64 is there (./dev sees to it).
set -eu
cd "$(dirname "$0")/.."
out=${1:-build/wheel-arm64}
mkdir -p "$out"
out=$(cd "$out" && pwd)
root=$PWD/build/sysroot/arm64
launcher=
! command -v ccache >/dev/null 2>&1 || launcher=-DCMAKE_C_COMPILER_LAUNCHER=ccache
{
    # shellcheck disable=SC2086
    cmake --preset arm64 -B "$out/build" -DKILN_REPRODUCIBLE=ON -DKILN_WERROR=OFF \
        -DKILN_TESTS=OFF -DKILN_BENCH=OFF -DCMAKE_INSTALL_LIBDIR=lib $launcher &&
    cmake --build "$out/build" -j "${KILN_JOBS:-$(nproc)}" &&
    rm -rf "$out/tree" "$out"/*.whl &&
    cmake --install "$out/build" --prefix "$out/tree" --strip
} >"$out/log" 2>&1 || {
    tail -n 40 "$out/log" >&2
    echo "the whole log is $out/log" >&2
    exit 1
}
python3 scripts/wheel.py "$out/tree" "$out" 9 "$root"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && cmake -E tar xf "$out"/kiln_cache-*.whl)
kiln=$work/kiln/native/bin/kiln
chmod +x "$kiln" "$work"/kiln/native/libexec/kiln/kiln-*
unset KILN_LIBEXEC LD_LIBRARY_PATH
export HOME="$work" KILN_CACHE_DIR="$work/cache"
for words in version stats verify ls "key generate $work/key.pem" "completion bash" "help exec"; do
    # shellcheck disable=SC2086
    qemu-aarch64-static -L "$root.run" "$kiln" $words >"$work/out" 2>&1 </dev/null || {
        cat "$work/out"
        echo "kiln $words failed under QEMU"
        exit 1
    }
done
echo "$(echo "$out"/kiln_cache-*.whl): tried under QEMU"
