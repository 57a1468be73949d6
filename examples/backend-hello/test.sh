#!/bin/sh
# test.sh HELLO BACKEND: greets twice; the second time nothing is compiled. Then a backend file that is none.
set -eu
cache=$(mktemp -d)
trap 'rm -rf "$cache"' EXIT
export KILN_CACHE_DIR="$cache/cache" KILN_BACKEND_PATH="$2"

check() {
    got=$("$1")
    [ "$got" = "$2" ] || {
        echo "got \"$got\", expected \"$2\""
        exit 1
    }
}
check "$1" "HELLO, WORLD (compiled)"
check "$1" "HELLO, WORLD (disk)"

echo "this is no library" >"$cache/no.so"
if out=$(KILN_BACKEND_PATH="$cache/no.so" "$1" 2>&1); then
    echo "a backend file that is none was taken: $out"
    exit 1
fi
