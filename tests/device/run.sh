#!/bin/sh
# run.sh [TREE]: everything that needs a GPU, on a machine with one, from a tree that
# scripts/gpu_tree.sh made (default .gpu): the conformance suite on each backend that is there, the
# example kernels on every device against their references, one kernel on two devices, what only a
# real driver can show, whether programs take the same path under kiln (same_path.py; $SAME_PATH names some
# of them, or "none"). Fails if any of it fails; what is not there is skipped and said.
set -u
cd "$(dirname "$0")/../.." || exit 1
tree=${1:-.gpu}
. scripts/gpu_env.sh
# The suite was built with its directory's path.
source=$(cat "$tree/source")
if [ ! -e "$source" ]; then
    mkdir -p "$(dirname "$source")" && ln -s "$PWD" "$source"
fi
KILN_CACHE_DIR=$(mktemp -d)/kiln
export KILN_CACHE_DIR
bad=0
say() { printf '\n== %s\n' "$*"; }
step() {
    name=$1
    shift
    "$@" >"${OUT:-/tmp}/$name.log" 2>&1
    code=$?
    case $code in
    0) echo "ok      $name" ;;
    77) echo "skipped $name: $(tail -n 1 "${OUT:-/tmp}/$name.log")" ;;
    *)
        echo "FAILED  $name ($code)"
        grep -E 'ERROR|FAILED|gave|error|wrong|WRONG' "${OUT:-/tmp}/$name.log" | head -n 25
        bad=1
        ;;
    esac
}
say devices
kiln devices --isolate || true
say tests
for backend in cuda opencl vulkan opengl cpu; do
    step "conformance_$backend" conformance "$backend"
done
for api in opencl vulkan opengl cuda; do
    step "dropin_$api" "dropin_$api"
done
step two_devices two_devices
step hard_cases hard_cases
say "example kernels against their references, cold and warm"
step demo python3 scripts/demo.py "$tree"
head -n 80 "${OUT:-/tmp}/demo.log"
if [ "${SAME_PATH:-}" != none ]; then
    say "programs under kiln and without"
    # shellcheck disable=SC2086 # names of programs
    step same_path python3 tests/device/same_path.py --tracers "$tree/trace" ${SAME_PATH:-}
    head -n 120 "${OUT:-/tmp}/same_path.log"
fi
[ $bad -eq 0 ] && echo "all good"
exit $bad
