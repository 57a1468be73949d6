#!/bin/sh
# units.sh KILN UNITS: what the service that kiln installs starts leaves the counters that the Grafana dashboard shows.
set -eu
kiln=$1 units=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "$*"; exit 1; }
for unit in "$units"/*; do
    ! command -v systemd-analyze >/dev/null || systemd-analyze verify "$unit" 2>&1 | grep -F "$unit" && fail "$unit"
done
line=$(sed -n "s/^ExecStart=\/bin\/sh -ec '\(.*\)'\$/\1/p" "$units/kiln-metrics@.service" | sed 's/\$\$/$/g')
[ -n "$line" ] || fail "the service starts nothing"
mkdir "$folder/bin" "$folder/state"
ln -s "$kiln" "$folder/bin/kiln"
export KILN_CACHE_DIR="$folder/cache" STATE_DIRECTORY="$folder/state"
start() { PATH=$folder/bin:$PATH /bin/sh -ec "$line"; }

# Before there is a cache, too.
start
grep -q '^# EOF' "$folder/state/kiln.prom" || fail "no metrics: $(cat "$folder/state/kiln.prom")"
start
grep -q '^kiln_' "$folder/state/kiln.prom" || fail "no counters: $(cat "$folder/state/kiln.prom")"
[ "$(ls "$folder/state")" = kiln.prom ] || fail "left: $(ls "$folder/state")"

# Where the counters are unavailable, the last ones stay.
cp "$folder/state/kiln.prom" "$folder/before"
KILN_CACHE_DIR=relative start 2>/dev/null && fail "a wrong variable is not an error"
cmp "$folder/before" "$folder/state/kiln.prom"
echo "units: fine"
