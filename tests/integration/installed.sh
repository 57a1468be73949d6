#!/bin/sh
# installed.sh BUILD: what `cmake --install` leaves is enough to build and run a program that uses the
# library, found by pkg-config, linked either way; and the tree may be moved.
set -eu
build=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$build" --prefix "$folder/elsewhere" >/dev/null
mv "$folder/elsewhere" "$folder/usr"
cat >"$folder/hello.c" <<'END'
#include <kiln/kiln.h>
#include <string.h>

int main(void)
{
    return strcmp(kiln_version(), KILN_VERSION) != 0;
}
END
PKG_CONFIG_PATH=$(dirname "$(find "$folder/usr" -name kiln.pc)")
export PKG_CONFIG_PATH
LD_LIBRARY_PATH=$(dirname "$PKG_CONFIG_PATH")

# The command finds its library, its helpers and the kernels next to itself. Then that library for ours.
unset KILN_LIBEXEC
KILN_CACHE_DIR=$folder/own "$folder/usr/bin/kiln" run --device cpu:0 --kernel saxpy \
    "$(pkg-config --variable=kernelsdir kiln)/manifest.json" >"$folder/log" || { cat "$folder/log"; exit 1; }
KILN_CACHE_DIR=$folder/own "$folder/usr/bin/kiln" doctor >"$folder/log" 2>&1 || true
grep -q "kiln-probe is not found" "$folder/log" && cat "$folder/log" && exit 1
[ -x "$(pkg-config --variable=libexecdir kiln)/kiln-probe" ]
export LD_LIBRARY_PATH
# shellcheck disable=SC2046
cc -std=c17 -o "$folder/shared" "$folder/hello.c" $(pkg-config --cflags --libs kiln)
"$folder/shared"
# shellcheck disable=SC2046
cc -std=c17 -o "$folder/static" "$folder/hello.c" $(pkg-config --cflags kiln) \
    "$LD_LIBRARY_PATH/libkiln.a" $(pkg-config --static --libs-only-l --libs-only-other kiln |
    sed 's/-lkiln//')
"$folder/static"
echo "installed headers, shared and static library: fine"

# The examples of examples/installed, as a user's CMake project, each run twice: the second time nothing
# is compiled.
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
cmake -G Ninja -S "$source_dir/examples/installed" -B "$folder/examples" -DCMAKE_PREFIX_PATH="$folder/usr" \
    -DCMAKE_BUILD_TYPE=Debug >"$folder/log" || { cat "$folder/log"; exit 1; }
cmake --build "$folder/examples" >"$folder/log" || { cat "$folder/log"; exit 1; }
KILN_CACHE_DIR=$folder/cache
KILN_BACKEND=cpu
export KILN_CACHE_DIR KILN_BACKEND
for example in cache runtime runtime_static cpp; do
    "$folder/examples/$example" >"$folder/first"
    "$folder/examples/$example" >"$folder/second"
    grep -q compiled "$folder/second" && echo "$example compiled twice" && exit 1
    cat "$folder/second"
done
KILN_CACHE_DIR=$folder/tunings "$folder/examples/tuned" | grep '^measured, '
KILN_CACHE_DIR=$folder/tunings "$folder/examples/tuned" | grep '^found, '
if command -v python3 >/dev/null; then
    python3 "$source_dir/examples/installed/cache.py" "$LD_LIBRARY_PATH/libkiln.so"
    python3 "$source_dir/examples/installed/cache.py" "$LD_LIBRARY_PATH/libkiln.so" | grep disk
fi
# kiln.hpp, by the compilers that there are.
for compiler in c++ clang++ clang++-14; do
    command -v $compiler >/dev/null || continue
    # shellcheck disable=SC2046
    $compiler -std=c++17 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -o "$folder/wrapper" \
        "$source_dir/tests/integration/wrapper.cpp" $(pkg-config --cflags --libs kiln)
    "$folder/wrapper" "$folder/watched.c"
done
# A component that there is not is named; a version that there is not is refused.
for wrong in "COMPONENTS cache teapot" "99"; do
    mkdir "$folder/wrong"
    printf 'cmake_minimum_required(VERSION 3.16)\nproject(wrong LANGUAGES C)\nfind_package(kiln %s REQUIRED)\n' \
        "$(echo "$wrong" | sed 's/^\([A-Z]\)/0.1 \1/')" >"$folder/wrong/CMakeLists.txt"
    cmake -G Ninja -S "$folder/wrong" -B "$folder/wrong/build" -DCMAKE_PREFIX_PATH="$folder/usr" \
        >"$folder/log" 2>&1 && echo "find_package(kiln $wrong) should fail" && exit 1
    case $wrong in
    COMPONENTS*) grep -q 'no component "teapot"; it has: cache' "$folder/log" || { cat "$folder/log"; exit 1; } ;;
    esac
    rm -r "$folder/wrong"
done
echo "installed package and examples: fine"
