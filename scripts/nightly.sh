#!/bin/sh
# nightly.sh DEV [PART...]: what is too long for .ci/run, by the command DEV (./dev), each part with a limit of its own and
# a line at its end: ok, failed, or skipped with the reason. Without PARTs, all but those marked "by name". What a part
# printed is in build/nightly/PART.log. A part that could not build, or fetch, what it needs has failed. Exits 1 if any has.
set -eu
cd "$(dirname "$0")/.."
dev=$1
shift

# name, limit in minutes, command
list() {
    cat <<END
fuzz 30 fuzz all ${KILN_FUZZ_SECONDS:-20}
stress 30 test release -L stress|slow|nightly --repeat until-fail:2
asan 40 test asan -L pocl
modules 20 test modules -R ^(conformance_(fake|cpu|opencl|vulkan|opengl)|backend_hello|modules)$
windows 40 test windows
deb 30 package deb
chroot 40 package chroot
wheel 30 package wheel
arm64 60 test arm64
s390x 60 test s390x
musl 40 test musl
differential 60 differential --seconds ${KILN_DIFFERENTIAL_SECONDS:-300}
repro 60 package repro
loaded 240 loaded 3
END
}
by_name="repro loaded"

for part; do
    list | cut -d' ' -f1 | grep -qx -e "$part" || {
        echo "nightly: no such part: $part (give $(list | cut -d' ' -f1 | tr '\n' ' '))" >&2
        exit 2
    }
done
if [ $# -eq 0 ]; then
    for part in $(list | cut -d' ' -f1); do
        case " $by_name " in *" $part "*) ;; *) set -- "$@" "$part" ;; esac
    done
fi

# Why a part that ended well, or for lack of packages, did nothing. Empty: it did something.
find_reason() {
    sed -n -e 's/^dev: missing packages: /missing packages: /p' -e "s/^skipped: $1: //p" "$2" | head -n 1
}

# Three numbers, and what is added to them.
set_counts() { counts="$(($1 + $4)) $(($2 + $5)) $(($3 + $6))"; }

mkdir -p build/nightly
failed=
counts="0 0 0" # ok, failed, skipped
for part; do
    row=$(list | grep "^$part ")
    limit=$(echo "$row" | cut -d' ' -f2)
    words=$(echo "$row" | cut -d' ' -f3-)
    log=build/nightly/$part.log
    began=$(date +%s)
    rc=0
    # shellcheck disable=SC2086 # a list of words
    timeout --kill-after=30 "${limit}m" "$dev" $words >"$log" 2>&1 </dev/null || rc=$?
    took=$(($(date +%s) - began))
    reason=$(find_reason "$part" "$log")
    case $rc:$reason in
    *:"no sysroot: "* | *:"no sources: "* | *:"no libraries: "*) state="failed  $part ($took s): $reason" ;;
    0: | 124:* | 137:*)
        state="ok      $part ($took s)"
        [ "$rc" = 0 ] || state="failed  $part: over its limit of $limit min, see $log"
        ;;
    0:* | 2:"missing packages: "*) state="skipped $part: $reason" ;;
    *) state="failed  $part ($took s): $(tail -n 1 "$log") (status $rc, see $log)" ;;
    esac
    echo "$state"
    # shellcheck disable=SC2086 # three numbers
    case $state in
    ok*) set_counts $counts 1 0 0 ;;
    failed*) set_counts $counts 0 1 0 && failed="$failed $part" ;;
    *) set_counts $counts 0 0 1 ;;
    esac
done
# shellcheck disable=SC2086 # three numbers
printf 'nightly: %d ok, %d failed, %d skipped%s\n' $counts "${failed:+; failed:$failed}"
[ -z "$failed" ]
