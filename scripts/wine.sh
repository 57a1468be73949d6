#!/bin/sh
# wine.sh PROGRAM [ARG…]: runs a Windows program, with a prefix of its own in build/. Its output comes
# when it ends: Wine's own processes live on with whatever they were started with, and who reads a pipe
# would wait for them.
set -u
folder=$(cd "$(dirname "$0")/.." && pwd)/build/wine
export WINEPREFIX="${WINEPREFIX:-$folder/prefix}" WINEDEBUG="${WINEDEBUG:--all}"
export WINEDLLOVERRIDES='mscoree,mshtml,winemenubuilder.exe='
mkdir -p "$folder/home"
export HOME="$folder/home"
output=$(mktemp)
rc=0
/usr/lib/wine/wine64 "$@" >"$output" 2>&1 </dev/null || rc=$?
cat "$output"
rm -f "$output"
exit "$rc"
