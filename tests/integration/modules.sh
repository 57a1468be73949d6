#!/bin/sh
# modules.sh BUILD: a build with backends as modules, installed. A backend that was left out is distinguished from one
# without a driver, one of another kiln is refused, and the others work on.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset KILN_LIBEXEC KILN_BACKEND KILN_BACKEND_PATH
KILN_CACHE_DIR=$folder/cache
export KILN_CACHE_DIR
cmake --install "$1" --prefix "$folder/usr" >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
kiln=$folder/usr/bin/kiln
modules=$folder/usr/libexec/kiln

expect() {
    "$kiln" devices >"$folder/out" 2>&1 || true
    grep -Eq "$1" "$folder/out" || { echo "no line like \"$1\" in:"; cat "$folder/out"; exit 1; }
}
expect '^cpu  *ready'
rm "$modules/libkiln-opencl.so"
expect '^opencl  *library missing .*libkiln-opencl.so is not among'
echo "no library" >"$modules/libkiln-vulkan.so"
expect '^vulkan  *library unusable'
"$kiln" run --kernel saxpy "$folder/usr/share/kiln/kernels/manifest.json" >"$folder/out" ||
    { cat "$folder/out"; exit 1; }
rm "$modules"/libkiln-*.so
expect '^cpu  *library missing .*libkiln-cpu.so is not among'
