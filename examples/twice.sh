#!/bin/sh
# twice.sh KILN PROGRAM: runs an example twice on one cache; the second run must compile nothing. What PoCL compiles is stored
# on request: KILN_CAPTURE.
set -u
KILN_CACHE_DIR=$(mktemp -d) || exit 1
export KILN_CACHE_DIR
trap 'rm -rf "$KILN_CACHE_DIR"' EXIT
KILN_CAPTURE=1 "$2" || exit $?
first=$("$1" stats --json) || exit 1
"$2" || exit $?
second=$("$1" stats --json) || exit 1
compiles() {
    printf '%s\n' "$1" | sed -n 's/.*"compiles": *\([0-9]*\).*/\1/p' | head -1
}
echo "compiles: $(compiles "$first"), then $(compiles "$second")"
[ -n "$(compiles "$first")" ] && [ "$(compiles "$first")" -gt 0 ] &&
    [ "$(compiles "$first")" = "$(compiles "$second")" ]
