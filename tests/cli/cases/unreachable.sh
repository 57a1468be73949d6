# shellcheck shell=sh disable=SC2086
cat >saxpy.fake <<'EOF'
kernel saxpy a:float x:floats y:floats
y = a x * y +
EOF
run="run saxpy.fake --global 16 --arg value:f32=2.5 --arg in:f32:16 --arg inout:f32:16"
export KILN_BACKEND=fake KILN_FAKE_BOUND=1
"$KILN" $run >/dev/null
KILN_FAKE_DRIVER=0.9 "$KILN" $run >/dev/null
KILN_FAKE_BUILD_ID=ffff KILN_FAKE_BOUND=0 "$KILN" $run >/dev/null # where any machine can compile
t prune --unreachable --dry-run
t prune --unreachable --dry-run --json
t prune --unreachable
t prune --unreachable
"$KILN" $run --cache-only >/dev/null && echo "what is for this driver stays"
KILN_FAKE_BUILD_ID=ffff KILN_FAKE_BOUND=0 "$KILN" $run --cache-only >/dev/null && echo "and what any machine can compile"
t prune --unreachable --max-age 1d
t prune --dry-run
t prune
