#!/bin/sh
# run_ctest.sh BUILD [ARG…]: runs CTest and then says, before CTest's own closing lines, which tests
# were skipped and why. Both are kept, in BUILD/skipped.txt and BUILD/ctest.closing.
set -eu
build=$1
shift
# Where many wait for a processor, a test that starves has not failed. CMake puts the limits back each time
# it configures.
if [ -n "${KILN_PATIENT:-}" ]; then
    find "$build" -name CTestTestfile.cmake -exec sed -i 's/ TIMEOUT "\([0-9]*\)"/ TIMEOUT "\10"/g' {} +
fi
# The long tests begin first, also in a tree that has never run them.
costs=$build/Testing/Temporary/CTestCostData.txt
if [ ! -f "$costs" ]; then
    mkdir -p "$build/Testing/Temporary"
    awk '!/^#/ { print $1, 1, $2 } END { print "---" }' "$(dirname "$0")/../tests/costs.txt" >"$costs"
fi
rm -f "$build/ctest.closing"
: >"$build/ctest.skipped"
{
    rc=0
    ctest --test-dir "$build" --output-on-failure --no-tests=error "$@" </dev/null 2>&1 || rc=$?
    echo "$rc" >"$build/ctest.rc"
} | awk -v closing="$build/ctest.closing" -v skipped="$build/ctest.skipped" '
    /% tests passed/ { held = 1 }
    held { print > closing; next }
    /\*\*\*Skipped/ { print $4 > skipped }
    { print; fflush() }'
rc=$(cat "$build/ctest.rc")
# CTest's log has what a skipped test printed, but not that it was skipped. The reason is its line
# that begins with SKIP, else its last.
awk 'FILENAME ~ /ctest.skipped$/ { is_skipped[$1] = 1; next }
     /^[0-9]+\/[0-9]+ Test: / { name = $3; last = ""; told = 0 }
     /^(SKIP|skip)/ { last = $0; told = 1 }
     /^<end of output>/ && is_skipped[name] {
         print "skipped: " name ": " (last == "" ? "no reason given" : last)
     }
     !told && !/^(-+|Output:|"|Command:|Directory:)/ && NF > 0 { last = $0 }' \
    "$build/ctest.skipped" "$build/Testing/Temporary/LastTest.log" >"$build/skipped.txt" || true
cat "$build/skipped.txt"
[ ! -f "$build/ctest.closing" ] || cat "$build/ctest.closing"
exit "$rc"
