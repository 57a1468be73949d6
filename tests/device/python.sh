#!/bin/sh
# python.sh [PYTHON]: kiln's adapters under `kiln exec` with the real Triton, PyTorch and JAX that PYTHON has, next to kiln's
# wheel, on a machine with a GPU. JAX_TESTS is the directory tests/ of JAX's sources, of the version that is installed. Prints a
# line a step, logs to $OUT; fails if a step does. What is not installed is skipped.
set -u
cd "$(dirname "$0")/../.." || exit 1
python=${1:-python3}
out=${OUT:-$(mktemp -d)}
kiln=${KILN:-$(dirname "$python")/kiln}
programs=$PWD/tests/device/python
bad=0

# step NAME COMMAND…: each in a home of its own, and its log.
step() {
    name=$1
    shift
    home=$(mktemp -d)
    env HOME="$home" XDG_CACHE_HOME="$home" KILN_CACHE_DIR="$home/kiln" XLA_PYTHON_CLIENT_PREALLOCATE=false "$@" \
        >"$out/$name.log" 2>&1
    code=$?
    case $code in
    0) echo "ok      $name: $(tail -n 1 "$out/$name.log")" ;;
    77) echo "skipped $name: $(tail -n 1 "$out/$name.log")" ;;
    *)
        echo "FAILED  $name ($code)"
        tail -n 25 "$out/$name.log"
        bad=1
        ;;
    esac
    rm -rf "$home"
}

# The tests of JAX's that fail under "$@".
jax_failures() {
    home=$(mktemp -d)
    env HOME="$home" XDG_CACHE_HOME="$home" KILN_CACHE_DIR="$home/kiln" XLA_PYTHON_CLIENT_PREALLOCATE=false \
        "$@" "$JAX_TESTS/compilation_cache_test.py" >"$out/jax.log" 2>&1
    grep -E '^(FAIL|ERROR): ' "$out/jax.log" | sort
    grep -E '^Ran [0-9]+ tests' "$out/jax.log" | cut -d' ' -f1-3
}

for program in triton inductor jax; do
    step "$program" "$kiln" exec -- "$python" "$programs/under_$program.py"
done
step jax_unwritable env HOME=/proc XDG_CACHE_HOME=/proc "$kiln" exec -- "$python" "$programs/under_jax.py"
step crowd env KILN="$kiln" "$python" tests/device/crowd.py
step adapters "$python" python/by_hand/adapters.py
if [ -e "${JAX_TESTS:-}/compilation_cache_test.py" ]; then
    jax_failures "$python" >"$out/jax_alone"
    jax_failures "$kiln" exec -- "$python" >"$out/jax_under"
    if diff "$out/jax_alone" "$out/jax_under"; then
        echo "ok      jax_suite: $(tail -n 1 "$out/jax_under"), the same $(grep -c : "$out/jax_under") fail with and without kiln"
    else
        echo "FAILED  jax_suite"
        bad=1
    fi
else
    echo "skipped jax_suite: JAX_TESTS does not name JAX's directory tests"
fi
exit $bad
