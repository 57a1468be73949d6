#!/bin/sh
# installed.sh BUILD: what `cmake --install` leaves is enough to build and run a program that uses the
# library, found by pkg-config, linked either way.
set -eu
build=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cmake --install "$build" --prefix "$folder/usr" >/dev/null
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
export LD_LIBRARY_PATH
# shellcheck disable=SC2046
cc -std=c17 -o "$folder/shared" "$folder/hello.c" $(pkg-config --define-prefix --cflags --libs kiln)
"$folder/shared"
# shellcheck disable=SC2046
cc -std=c17 -o "$folder/static" "$folder/hello.c" $(pkg-config --define-prefix --cflags kiln) \
    "$LD_LIBRARY_PATH/libkiln.a" $(pkg-config --define-prefix --static --libs-only-l --libs-only-other kiln |
    sed 's/-lkiln//')
"$folder/static"
echo "installed headers, shared and static library: fine"
