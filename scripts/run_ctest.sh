#!/bin/sh
# run_ctest.sh BUILD [ARG…]: runs CTest and then says, before CTest's own closing lines, which tests
# were skipped and why. Both are kept, in BUILD/skipped.txt and BUILD/ctest.closing.
set -eu
build=$1
shift
rm -f "$build/ctest.closing"
{
    rc=0
    ctest --test-dir "$build" --output-on-failure --no-tests=error "$@" </dev/null 2>&1 || rc=$?
    echo "$rc" >"$build/ctest.rc"
} | awk -v closing="$build/ctest.closing" '
    /% tests passed/ { held = 1 }
    held { print > closing; next }
    { print; fflush() }'
rc=$(cat "$build/ctest.rc")
awk '/^[0-9]+\/[0-9]+ Test: / { name = $3; last = "" }
     /^(SKIP|skip)/ { last = $0 }
     /^Test Skipped/ { print "skipped: " name ": " (last == "" ? "no reason given" : last) }' \
    "$build/Testing/Temporary/LastTest.log" >"$build/skipped.txt" || true
cat "$build/skipped.txt"
[ ! -f "$build/ctest.closing" ] || cat "$build/ctest.closing"
exit "$rc"
