#!/bin/sh
# run.sh KILN CASE: runs cases/CASE.sh in a directory and with a cache of its own, and compares what it
# printed with cases/CASE.out. KILN_UPDATE=1 writes that file instead.
#
# In a case, `t ARG…` runs kiln and shows the command, its standard output, its standard error with
# "! " before each line, and its exit code unless it is 0 ($KILN_PATH is its PATH). `need BACKEND` skips the case where the
# backend has no device. What differs from run to run is replaced: see `normalise`. On another system
# ($CLI_SYSTEM) what is expected is changed by cases/SYSTEM/CASE.sed, where that is there.
set -eu
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cases=$(cd "$(dirname "$0")" && pwd)/cases
name=$2
source_dir=$(cd "$(dirname "$0")/../.." && pwd)

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for variable in $(env | sed -n 's/^\(KILN_[A-Z_]*\)=.*/\1/p'); do
    case $variable in
    KILN_UPDATE | KILN_REQUIRE | KILN_LIBEXEC) ;;
    *) unset "$variable" ;;
    esac
done
mkdir "$folder/work" "$folder/home" "$folder/bin"
ln -s "$program" "$folder/bin/kiln"
export HOME="$folder/home" XDG_CACHE_HOME="$folder/home/.cache" KILN_CACHE_DIR="$folder/cache"
export TERM=dumb LC_ALL=C KILN="$program" SOURCE_DIR="$source_dir"
unset XDG_CONFIG_HOME NO_COLOR COLUMNS POCL_CACHE_DIR POCL_KERNEL_CACHE MESA_SHADER_CACHE_DIR CUDA_CACHE_PATH PYTHONDONTWRITEBYTECODE 2>/dev/null || true
cd "$folder/work"

t() {
    printf '$ kiln %s\n' "$*"
    code=0
    PATH=${KILN_PATH:-$PATH} "$KILN" "$@" >"$HOME/out" 2>"$HOME/err" </dev/null || code=$?
    cat "$HOME/out"
    sed 's/^/! /' "$HOME/err"
    [ "$code" = 0 ] || echo "[$code]"
}

need() {
    "$KILN" devices --backend "$1" >/dev/null 2>&1 && return 0
    case ",${KILN_REQUIRE:-}," in
    *",$1,"*) echo "REQUIRED $1: kiln devices --backend $1 finds nothing" && exit 1 ;;
    esac
    echo "SKIP $1: no device" >&3
    exit 77
}

# Paths, keys, times, sizes, and the width of columns.
normalise() {
    sed -E -e "s#(Z:)?$folder#TMP#g" -e "s#C:/users/[^/]*#C:/users/USER#g" -e "s#(^|[^A-Za-z0-9_./-])$source_dir(/|\$|[^A-Za-z0-9_.-])#\1SOURCE\2#g" \
        -e 's/[0-9a-f]{64}/KEY/g' -e 's/\b[0-9a-f]{16}\b/KEY/g' \
        -e 's/-?[0-9]+\.[0-9]+(e[-+][0-9]+)? (us|ms|s|min|h)\b/TIME/g' \
        -e 's/[0-9]+(\.[0-9]+)? (B|KiB|MiB|GiB)\b/SIZE/g' \
        -e 's/("[a-z_]*ms": )[-0-9.e+]+/\1T/' \
        -e 's/("[a-z_]*(bytes|bytes_seen|bytes_removed|_ns)": )[0-9]+/\1N/' \
        -e 's/ [0-9]+\.[0-9]{3}( |$)/ T\1/g' -e 's/ [0-9]+\.[0-9]{3}( |$)/ T\1/g' \
        -e 's/ +/ /g' -e 's/ $//'
}

code=0
# A failing command in a case is a finding, not the end of it.
# shellcheck source=/dev/null
(set +e; . "$cases/$name.sh") 3>&1 >"$folder/raw" 2>&1 || code=$?
if [ "$code" != 0 ]; then
    [ "$code" = 77 ] && echo "SKIP: what this case needs is not there" && exit 77
    cat "$folder/raw"
    exit 1
fi
normalise <"$folder/raw" >"$folder/got"
if [ -n "${KILN_UPDATE:-}" ]; then
    cp "$folder/got" "$cases/$name.out"
    exit 0
fi
change=$cases/${CLI_SYSTEM:-}/$name.sed
[ -f "$change" ] || change=/dev/null
sed -E -f "$change" "$cases/$name.out" >"$folder/expected"
if ! diff -u "$folder/expected" "$folder/got"; then
    echo "tests/cli: $name differs; if it should, run it with KILN_UPDATE=1"
    exit 1
fi
