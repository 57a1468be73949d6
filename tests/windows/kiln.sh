#!/bin/sh
# kiln.sh KILN.exe ARG…: the command under Wine for a test that was written for the other build: what it says
# of places (variables, arguments that begin with a slash) gets Wine's drive for them, as Windows wants it.
# Wine's Vulkan is left out: it waits for a display.
set -eu
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
export WINEPREFIX="${WINEPREFIX:-$source_dir/build/wine/prefix}"
export WINEDEBUG=-all
export WINEDLLOVERRIDES='mscoree,mshtml,winemenubuilder.exe,vulkan-1='
export LC_ALL=C.UTF-8 # how Wine reads arguments and names
for name in KILN_CACHE_DIR KILN_PACKS KILN_TRACE KILN_RECORD KILN_LIBEXEC KILN_SIGNING_KEY KILN_TRUSTED_KEYS \
    XDG_CACHE_HOME CUDA_PATH HIP_PATH ROCM_PATH FAKENVRTC_LOG; do
    value=
    eval "value=\${$name:-}"
    case $value in
    /*) export "$name=$(printf '%s' "$value" | sed 's#:#;#g; s#^/#Z:/#; s#;/#;Z:/#g')" ;;
    esac
done
program=$1
shift
count=$#
while [ "$count" -gt 0 ]; do
    case $1 in
    /*) set -- "$@" "Z:$1" ;;
    *) set -- "$@" "$1" ;;
    esac
    shift
    count=$((count - 1))
done
exec /usr/lib/wine/wine64 "$program" "$@"
