#!/bin/sh
# loaded_runs.sh RUNS [DIRECTORY]: runs the whole suite RUNS times, one after the other, on a machine kept
# busy, to find the tests that pass by luck. By hand: `nice scripts/loaded_runs.sh 20`. Each run takes the
# newest commit of the branch checked out here; each fifth begins with a fresh clone. Where the machine has
# less than four runnable processes, two busy loops run next to it. Tests have ten times as long as their
# limits. In DIRECTORY (default build/loaded): `summary` has a line a run (commit, load average, time, failed
# tests), logs/RUN what the tests printed. Runs are numbered on from those in `summary`. The file
# DIRECTORY/stop ends it after the current run.
set -eu
[ $# -ge 1 ] || { echo "usage: $0 RUNS [DIRECTORY]" >&2; exit 2; }
runs=$1
origin=$(cd "$(dirname "$0")/.." && pwd)
directory=${2:-$origin/build/loaded}
mkdir -p "$directory/logs"
directory=$(cd "$directory" && pwd)
cd "$directory"
touch summary

loops=
stop_loops() {
    # shellcheck disable=SC2086 # a list of process ids
    [ -z "$loops" ] || kill $loops
    loops=
}
trap stop_loops EXIT
trap 'exit 130' INT TERM

load() { cut -d' ' -f1 /proc/loadavg; }

# The busy loops end with this script, killed or not: each looks now and then whether it is there.
start_loops() {
    awk '{ exit !($1 < 4) }' /proc/loadavg || return 0
    for _ in 1 2; do
        (while kill -0 $$ 2>/dev/null; do
            i=0
            while [ $i -lt 1000000 ]; do i=$((i + 1)); done
        done) &
        loops="$loops $!"
    done
}

update_clone() {
    if [ $(($1 % 5)) = 1 ] || ! [ -d clone ]; then
        rm -rf clone
        git clone -q "$origin" clone
    else
        git -C clone pull -q --ff-only
    fi
}

first=$(($(wc -l <summary) + 1))
run=$first
while [ "$run" -lt $((first + runs)) ] && ! [ -e stop ]; do
    update_clone "$run"
    logs=logs/$run
    mkdir -p "$logs"
    rc=0
    clone/dev build release >"$logs/build" 2>&1 || rc=$?
    if [ "$rc" != 0 ]; then
        tail "$logs/build" >&2
        exit 1
    fi
    before=$(load)
    start_loops
    began=$(date +%s)
    (cd clone && CI=true KILN_PATIENT=1 ./dev test release) >"$logs/tests" 2>&1 || rc=$?
    took=$(($(date +%s) - began))
    busy=$(echo "$loops" | wc -w)
    stop_loops
    cp clone/build/release/Testing/Temporary/LastTest.log "$logs/" || true
    failed=$(sed -n '/tests FAILED:/,$ s/^[[:space:]]*[0-9]* - \(.*)\).*/\1/p' "$logs/tests" |
        grep -v '(Skipped)$' | tr '\n' ';' || true)
    printf '%s\n' "run $run: $(git -C clone rev-parse --short HEAD), ended $(date -u +%H:%M), $took s," \
        "load $before to $(load), $busy busy loops, status $rc, failed: ${failed:-none}" |
        tr '\n' ' ' >>summary
    echo >>summary
    run=$((run + 1))
done
