#!/bin/sh
# package_windows.sh [DIRECTORY]: the zip for 64-bit Windows, in DIRECTORY (default build/windows-package): command,
# library, helpers, headers, what a compiler links with, example kernels, documents and licences, from a build
# that knows no directory of this machine. It is then unpacked and tried under Wine.
set -eu
cd "$(dirname "$0")/.."
source_dir=$PWD
out=${1:-build/windows-package}
version=$(sed -n 's/^project(kiln VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
epoch=$(dpkg-parsechangelog -l packaging/debian/changelog -S Timestamp)
export SOURCE_DATE_EPOCH="$epoch" # of the linker's stamps
mkdir -p "$out"
out=$(cd "$out" && pwd)
name=kiln-$version-windows-amd64
tree=$out/$name
launcher=
! command -v ccache >/dev/null 2>&1 || launcher=-DCMAKE_C_COMPILER_LAUNCHER=ccache
{
    # shellcheck disable=SC2086
    cmake --preset windows -B "$out/build" -DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2 -DKILN_REPRODUCIBLE=ON -DKILN_TESTS=OFF \
        -DKILN_SOURCES="$source_dir/build/sources" $launcher &&
    cmake --build "$out/build" -j "${KILN_JOBS:-$(nproc)}"
} >"$out/log" 2>&1 || {
    tail -n 40 "$out/log" >&2
    echo "the whole log is $out/log" >&2
    exit 1
}

umask 022
rm -rf "$tree" "$out"/*.zip
mkdir -p "$tree/bin" "$tree/lib" "$tree/include" "$tree/share" "$tree/licenses"
for file in "$out"/build/bin/*.exe "$out"/build/bin/*.dll; do
    x86_64-w64-mingw32-strip -o "$tree/bin/$(basename "$file")" "$file"
done
cp "$out/build/src/libkiln.dll.a" "$out/build/generated/kiln.def" "$tree/lib"
cp -R include/kiln "$tree/include"
# What git has of it, without what only the build needs.
git ls-files -- kernels docs README.md CHANGELOG.md | grep -v -e '^docs/man/' -e CMakeLists.txt \
    -e '^kernels/reference/' -e '^kernels/builtin/' -e '^kernels/kernels\.[ch]$' -e '^kernels/list.h$' \
    -e '^kernels/conv2d_5x5.c$' | while read -r file; do
    mkdir -p "$tree/share/$(dirname "$file")"
    cp "$file" "$tree/share/$file"
done
cp LICENSE "$tree/LICENSE.txt"
for library in zstd xxhash jansson libsodium; do
    cp "build/sources/$library/LICENSE" "$tree/licenses/$library.txt"
done
for library in curl hiredis; do
    cp "build/sources/$library/COPYING" "$tree/licenses/$library.txt"
done
runtime=/usr/share/doc/mingw-w64-common/copyright # of the C library and its threads, in the modules
[ ! -e "$runtime" ] || cp "$runtime" "$tree/licenses/mingw-w64.txt"
(cd "$out" && find "$name" -exec touch -h -d "@$epoch" {} + && find "$name" -type f | LC_ALL=C sort >list &&
    TZ=UTC cmake -E tar cf "$name.zip" --format=zip --files-from=list && rm list)
rm -rf "$tree"

# As a user has it: unpacked somewhere, with a space in its name, and a program that is built against it.
smoke="$out/un packed"
rm -rf "$smoke"
mkdir -p "$smoke"
cd "$smoke"
cmake -E tar xf "$out/$name.zip"
cd "$name"
"$source_dir/scripts/wine.sh" --start
trap '"$source_dir/scripts/wine.sh" --stop' EXIT
run() { KILN_CACHE_DIR="Z:$smoke/cache" "$source_dir/scripts/wine.sh" "$@"; }
fail() {
    echo "package_windows: $1" >&2
    exit 1
}
[ "$(run bin/kiln.exe version)" = "kiln $version" ] || fail "kiln version"
run bin/kiln.exe doctor -b cpu | grep -q '^ *cpu ' || fail "kiln doctor, which starts kiln-probe"
run bin/kiln.exe key generate key.pem | grep -q '^kiln-ed25519 ' || fail "kiln key, which opens libkiln-sign.dll"
for scheme in http redis; do
    run bin/kiln.exe remote check "$scheme://127.0.0.1:1/" | grep -q "onnect to server" || fail "the module for $scheme"
done
x86_64-w64-mingw32-gcc-posix -std=c17 -DKILN_SHARED -Iinclude "$source_dir/tests/windows/program.c" lib/libkiln.dll.a \
    -o bin/program.exe
run bin/program.exe >program.out || {
    cat program.out >&2
    fail "a program that is linked with the library"
}
run bin/kiln.exe verify >/dev/null || fail "kiln verify"
echo "$out/$name.zip: $(du -b "$out/$name.zip" | cut -f 1) bytes, tried under Wine"
