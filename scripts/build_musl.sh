#!/bin/sh
# build_musl.sh SOURCES DIRECTORY: builds what kiln needs besides musl itself, with musl-gcc, from the sources
# that fetch_sources.sh left in SOURCES, and installs it below DIRECTORY. Debian has these libraries for
# glibc alone; headers that say nothing of the C library (the kernel's, Khronos') are links to Debian's.
set -eu
[ $# -eq 2 ] || { echo "usage: $0 SOURCES DIRECTORY" >&2; exit 2; }
sources=$(cd "$1" && pwd)
mkdir -p "$2"
place=$(cd "$2" && pwd)
work=$place.partial
rm -rf "$work" "$place"
mkdir -p "$work" "$work.root/include"
trap 'rm -rf "$work" "$work.root"' EXIT
jobs=${KILN_JOBS:-$(nproc)}
CC=musl-gcc
CFLAGS="-O2 -fPIC"
export CC CFLAGS

for header in linux asm-generic CL EGL GL KHR vulkan vk_video; do
    [ ! -d "/usr/include/$header" ] || ln -s "/usr/include/$header" "$work.root/include/$header"
done
ln -s "/usr/include/$(uname -m)-linux-gnu/asm" "$work.root/include/asm"

# by_cmake NAME DIRECTORY OPTION...: one library of SOURCES, by its own CMakeLists.txt.
by_cmake() {
    name=$1 directory=$2
    shift 2
    cmake -G Ninja -S "$sources/$directory" -B "$work/$name" -DCMAKE_INSTALL_PREFIX="$place" \
        -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_BUILD_TYPE=None "$@"
    cmake --build "$work/$name" -j "$jobs"
    cmake --install "$work/$name" --prefix "$work.root"
}
by_cmake zstd zstd/build/cmake -DZSTD_BUILD_PROGRAMS=OFF -DZSTD_LEGACY_SUPPORT=OFF
by_cmake xxhash xxhash/cmake_unofficial -DXXHASH_BUILD_XXHSUM=OFF
by_cmake jansson jansson -DJANSSON_BUILD_DOCS=OFF -DJANSSON_WITHOUT_TESTS=ON -DJANSSON_EXAMPLES=OFF \
    -DJANSSON_BUILD_SHARED_LIBS=ON
by_cmake cmocka cmocka -DWITH_EXAMPLES=OFF
# Public-key algorithms, for which it wants GMP, are left out: kiln asks for SHA-256.
mkdir "$work/nettle"
cd "$work/nettle"
"$sources/nettle/configure" --prefix="$place" --libdir="$place/lib" --disable-public-key --disable-openssl \
    --disable-documentation --enable-fat
make -j "$jobs"
make install prefix="$work.root" libdir="$work.root/lib" includedir="$work.root/include"
mv "$work.root" "$place"
