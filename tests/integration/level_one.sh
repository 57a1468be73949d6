#!/bin/sh
# level_one.sh BUILD: kiln's cache without backends (-DKILN_BACKENDS=): taken in by FetchContent, then installed and found
# by find_package. What is installed is stripped, and needs Nettle and zstd alone.
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
work=$build/tests/level_one # always the same, for ccache
rm -rf "$work"
mkdir -p "$work"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "$*"; exit 1; }
quietly() { "$@" >"$work/log" 2>&1 || { tail -n 40 "$work/log"; exit 1; }; }
launcher=$(sed -n 's/^CMAKE_C_COMPILER_LAUNCHER:[A-Z]*=//p' "$build/CMakeCache.txt")
configure() {
    cmake -G Ninja -S "$here/level_one" -B "$work/$1" -DHOW="$1" -DKILN_SOURCE="$top" \
        -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_FLAGS_RELWITHDEBINFO="-O0 -g1" \
        -DCMAKE_C_COMPILER_LAUNCHER="$launcher" -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_PREFIX_PATH="$folder/kiln" ${2:+"$2"}
}
try() {
    KILN_CACHE_DIR=$(mktemp -d "$folder/XXXXXX")
    export KILN_CACHE_DIR
    for program in "$1/cache" "$1/cache_static"; do
        "$program" "$program" | grep -q '^compiled: ' || fail "$program: nothing is compiled"
        "$program" "$program" | grep -q '^disk: ' || fail "$program: no hit"
    done
    echo "$1: fine"
}

quietly configure fetch
quietly cmake --build "$work/fetch" -j 2
try "$work/fetch"

quietly cmake --install "$work/fetch" --prefix "$folder/kiln" --strip
[ "$(ls "$folder/kiln")" = "$(printf 'include\nlib\nshare')" ] || fail "installed: $(ls "$folder/kiln")"
for file in libkiln.so libkiln.a; do
    readelf -S "$folder/kiln/lib/$file" 2>/dev/null | grep -q debug_info && fail "$file is not stripped"
    strings -a "$folder/kiln/lib/$file" | grep -E 'libcuda|libOpenCL|libvulkan|libEGL' && fail "$file knows of drivers"
done
needs=$(readelf -d "$folder/kiln/lib/libkiln.so" | sed -n 's/.*NEEDED.*\[\(.*\)\.so.*/\1/p' | grep -vxE 'libc|libm' | sort)
[ "$needs" = "$(printf 'libnettle\nlibzstd')" ] || fail "it needs: $needs"
find "$folder/kiln/include" -name '*.h' | while read -r header; do
    cc -std=c17 -fsyntax-only -x c -I "$folder/kiln/include" "$header" || fail "$header cannot be included"
done
quietly configure find
quietly cmake --build "$work/find"
try "$work/find"

rm -rf "$work/find"
configure find -DCOMPONENT=runtime >"$work/log" 2>&1 && fail "the runtime was found"
grep -q 'kiln has no component "runtime"; it has: cache static' "$work/log" || fail "$(cat "$work/log")"
echo "level one: fine"
