# shellcheck shell=sh disable=SC2086
unset KILN_CACHE_DIR
mkdir -p "$HOME/.cache/pocl/kcache/x"
printf 1234 >"$HOME/.cache/pocl/kcache/x/y"
t doctor --backend fake
CUDA_CACHE_DISABLE=1 MESA_SHADER_CACHE_DIR="$HOME/mesa"
export CUDA_CACHE_DISABLE MESA_SHADER_CACHE_DIR
t doctor --backend fake --json
t doctor --backend nothing
t doctor --backend fake --cache-dir /dev/null/nowhere
KILN_NO_CACHE=1
export KILN_NO_CACHE
t doctor --backend fake
unset KILN_NO_CACHE
for outcome in "library missing" "library unusable" "symbol missing" "driver too old" "no device" \
    "no permission" "failed"; do
    echo "-- $outcome"
    KILN_FAKE_PROBE="$outcome"
    export KILN_FAKE_PROBE
    "$KILN" doctor --backend fake | sed -n 2,5p
    "$KILN" doctor --backend fake >/dev/null
    echo "[$?]"
done
unset KILN_FAKE_PROBE
# A driver that crashes or hangs takes neither the command nor its time.
for fault in open=crash open=hang; do
    echo "-- $fault"
    KILN_FAKE_FAULTS="$fault"
    export KILN_FAKE_FAULTS
    "$KILN" doctor --backend fake --timeout 500ms | sed -n 2,4p
done
unset KILN_FAKE_FAULTS
KILN_NO_CACHE=yes "$KILN" doctor --backend fake >/dev/null
echo "[$?]"
# Names and passwords stay here; what the doctor says is shown around.
KILN_REMOTE='redis://:hunter2@127.0.0.1:1/0  https://host/x http://me:hunter2@127.0.0.1:1/z' "$KILN" doctor --backend fake 2>/dev/null | grep KILN_REMOTE
# A cache that is only read, and packs: those that can be used, and why others cannot.
printf 'kernel k x:floats\nx = x 1 +\n' >k.fake
"$KILN" compile k.fake -b fake >/dev/null
"$KILN" pack create good.kpack >/dev/null
printf 'not a pack' >bad.kpack
export KILN_PACKS="$PWD/good.kpack:$PWD/bad.kpack:$PWD/absent.kpack:here.kpack" KILN_READONLY=1
"$KILN" doctor --backend fake 2>/dev/null | sed -n '/^Cache/,/^Drivers/p'
"$KILN" doctor --backend fake --json 2>/dev/null | sed -n '/"packs"/,/^  \]/p; /read_only/p'
unset KILN_PACKS KILN_READONLY
# One broken variable does not keep the rest from being examined; the last line is the verdict.
echo "-- broken variables"
"$KILN" key generate key.pem >trusted
printf 'nonsense\n' >bad.keys
examine() {
    "$KILN" doctor --backend fake 2>&1 | sed -n '/^Remotes/,/^Drivers/p; /^Environment/,$p' | grep -v '^Drivers'
    "$KILN" doctor --backend fake >/dev/null 2>&1
    echo "[$?]"
}
KILN_CACH_DIR=/x KILN_SOMETHING_ELSE=1 examine
KILN_LOG=loud KILN_CACHE_MAX_SIZE=x KILN_STRICT=3 KILN_BACKEND=cud KILN_CC_TIMEOUT=x KILN_TRUST=most \
    KILN_TRUSTED_KEYS="$PWD/bad.keys" KILN_SIGNING_KEY=/no/key KILN_REMOTE='foo redis://127.0.0.1:1' examine
# What would be taken from a remote, by trust and keys.
echo "-- remotes and keys"
away=redis://127.0.0.1:1
KILN_REMOTE="$away?unsigned-native $away/1?write-only $away/2?read-only" examine
KILN_REMOTE=$away KILN_TRUST=local examine
KILN_REMOTE=$away KILN_TRUST=signed examine
KILN_REMOTE=$away KILN_TRUSTED_KEYS="$PWD/trusted" KILN_SIGNING_KEY="$PWD/key.pem" examine
KILN_REMOTE="$away foo" "$KILN" doctor --backend fake --json 2>/dev/null | sed -n '/"remotes"/,/^  \]/p; /"problems"/,$p'
