#!/bin/sh
# chosen.sh SOURCE BUILD: what ./dev test builds for the tests that it is asked for.
set -eu
targets() { python3 "$1/scripts/test_targets.py" "$2" -R "$3"; }
expect() {
    [ "$2" = "$3" ] || { echo "$1: $3, not $2"; exit 1; }
}
expect "one program" tests/unit/store/store_disk "$(targets "$1" "$2" '^store_disk$')"
expect "the whole build" all "$(targets "$1" "$2" '^(store_disk|demo)$')"
fakes=$(targets "$1" "$2" '^cli_basics$')
for file in programs/kiln/kiln tests/support/fakecuda/good/libcuda.so.1; do
    echo "$fakes" | grep -qx $file || { echo "cli_basics: no $file: $fakes"; exit 1; }
done
echo "$fakes" | grep -q tests/unit && { echo "cli_basics: too much: $fakes"; exit 1; }
echo "chosen: fine"
