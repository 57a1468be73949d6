#!/bin/sh
# parallel.sh MANIFEST TARGETS PACK [PARTS]: makes a manifest's kernels in PARTS processes (default 4) and
# writes one pack. Run it again after an interruption: what was made is found in the cache.
set -eu
[ $# -ge 3 ] || { echo "usage: $0 MANIFEST TARGETS PACK [PARTS]" >&2; exit 2; }
manifest=$1 targets=$2 pack=$3 parts=${4:-4}
parallel --will-cite --halt now,fail=1 \
    kiln warm "$manifest" --target "$targets" --jobs 1 --shard "{}/$parts" --pack "$pack.{}" ::: $(seq "$parts")
# shellcheck disable=SC2046 # a list of files
kiln pack merge "$pack" $(seq -f "$pack.%g" "$parts")
