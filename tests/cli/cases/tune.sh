# shellcheck shell=sh disable=SC2086
# Variants on the fake backend, whose clock gives equal launches equal times.
cat >slow.fake <<'END'
kernel f x:floats y:floats
y = x 1 + x + 0 + 0 + 0 +
END
cat >quick.fake <<'END'
kernel f x:floats y:floats
y = x FACTOR * 1 +
END
# manifest FILE FACTOR: the second variant computes the same where FACTOR is 2.
manifest() {
    cat >"$1" <<END
{"kiln_manifest": 1, "kernels": [
  {"name": "f", "sources": {"fake": "slow.fake"}, "defines": {"FACTOR": "2"},
   "args": [{"name": "x", "kind": "in", "type": "f32", "shape": [64], "init": {"random": [0, 1]}},
            {"name": "y", "kind": "out", "type": "f32", "shape": [64]}],
   "launch": {"global": [64], "local": [4]},
   "variants": {"fake": [
     {"name": "group8", "launch": {"local": [8]}},
     {"name": "quick", "source": "quick.fake", "defines": {"FACTOR": "$2"}},
     {"name": "odd", "launch": {"local": [5]}}]},
   "size": ["y"], "flops": "2 * y"},
  {"name": "plain", "sources": {"fake": "slow.fake"}, "entry": "f",
   "args": [{"name": "x", "kind": "in", "type": "f32", "shape": [64]},
            {"name": "y", "kind": "out", "type": "f32", "shape": [64]}],
   "launch": {"global": [64]}}]}
END
}
manifest m.json 2
run="run m.json -b fake --kernel f --repeat 1"
picked() { "$KILN" "$@" --json | grep -E '"(variant|origin|compiles)"'; }
picked $run
t tune m.json -b fake --variants --budget 1h
# From now on it is known: by the next process, by kiln run, and not where it is not wanted.
t tune m.json -b fake
t tune m.json -b fake --json
picked $run
picked $run --untuned
KILN_UNTUNED=1 picked $run
t $run
"$KILN" stats --json | grep -E '"(tunings|tune_launches|tuned_hits|tuned_stale)"' | tr -d ,
"$KILN" tune m.json -b fake --again --budget 1h --json | grep -E '"(from|kiln_tune)"'
# Another driver, another question.
KILN_FAKE_DRIVER=9.9 "$KILN" tune m.json -b fake --budget 1h --json | grep '"from"'
KILN_FAKE_DRIVER=9.8 picked $run
t tune m.json --all-devices -b fake --budget 1h
# A device that takes none of the languages is reported, and is not a failure where all are tried.
sed 's/{"fake": "slow/{"cuda": "slow/; s/{"fake": \[/{"cuda": [/' m.json >cuda.json
t tune cuda.json --all-devices -b fake
# A pack carries it to another cache, where nothing is measured and nothing compiled.
"$KILN" pack create a.kpack >/dev/null
KILN_PACKS="$PWD/a.kpack" KILN_CACHE_DIR="$PWD/other" t tune m.json -b fake
KILN_PACKS="$PWD/a.kpack" KILN_CACHE_DIR="$PWD/other" picked $run
KILN_CACHE_DIR="$PWD/third" picked $run
# What computes something else is refused, however fast it is.
manifest wrong.json 3
t tune wrong.json -b fake --budget 1h --variants
# The same again, though nothing is measured: the same table, the same words, the same exit code.
t tune wrong.json -b fake --variants
# One line for what goes wrong, and its exit code.
t tune m.json -b fake --kernel plain
t tune m.json -b fake --kernel none
t tune none.json
sed 's/"local": \[8\]/"local": [8, 8]/' m.json >bad.json
t tune bad.json -b fake
sed 's/"2 \* y"/"2 * z"/' m.json >bad.json
t tune bad.json -b fake
sed 's/quick\.fake/gone.fake/' m.json >bad.json
t tune bad.json -b fake
sed 's/slow\.fake"}, "defines/none.fake"}, "defines/' m.json >bad.json
t tune bad.json -b fake
echo 'kernel f x:floats y:floats' >broken.fake
echo 'y = nothing' >>broken.fake
sed 's/slow\.fake"}, "defines/broken.fake"}, "defines/' m.json >bad.json
t tune bad.json -b fake
"$KILN" tune m.json -b cpu >/dev/null 2>&1
echo "[$?]"
t tune m.json -b fake --budget 1x
t tune
