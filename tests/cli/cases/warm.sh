# shellcheck shell=sh disable=SC2086
# A second run compiles nothing; what cannot be made here is reported; the pack hits elsewhere.
mkdir app
printf '#define N 1\n' >app/h.fake
for name in one two three; do
    printf '#include "h.fake"\nkernel %s x:floats\nx = x 1 +\n' $name >app/$name.fake
done
kernel() {
    printf '{"name": "%s", "sources": {"%s": "%s"}, "entry": "%s", "args": [{"name": "x", "kind": "inout", "type": "f32", "shape": [16], "init": {"fill": 1}}], "launch": {"global": [16]}}' "$1" "$2" "$3" "$1"
}
printf '{"kiln_manifest": 1, "kernels": [%s, %s]}\n' "$(kernel one fake one.fake)" "$(kernel two fake two.fake)" >app/a.json
printf '{"kiln_manifest": 1, "kernels": [%s, %s]}\n' "$(kernel three fake three.fake)" "$(kernel other opencl-c other.cl)" >app/b.json
printf '__kernel void other(__global float *x) {}\n' >app/other.cl
t warm app/a.json --target fake:0
t warm app/a.json --target fake:0
t warm app/a.json app/b.json --target fake:0 --target fake:1, -j 3 --pack app.kpack
t warm app/a.json app/b.json --target fake:0 --all --json
"$KILN" pack list app.kpack --json | grep '"target"' | sort | uniq -c
# By use: "two" is run twice, "one" once.
for kernel in two one two; do
    "$KILN" run app/a.json --kernel $kernel --backend fake >/dev/null 2>&1
done
"$KILN" warm app/a.json app/b.json --target fake:0 --used --json -j1 | grep -E '"(kernel|uses)"'
"$KILN" warm app/a.json app/b.json --target fake:0 --used --max 1 -j1 | grep fake:0
mkdir elsewhere
(
    export HOME=$PWD/elsewhere KILN_CACHE_DIR=$PWD/elsewhere/cache KILN_PACKS=$PWD/app.kpack
    "$KILN" warm app/a.json --target fake:0,fake:1 -j1 | tail -1
    # Not "entries": a slow run may keep header lists, whose files are then old enough to be known by their stamps.
    "$KILN" stats --json | grep -E '"(hits_pack|compiles)"'
    # A pack of what is only in a pack.
    "$KILN" warm app/a.json --target fake:0 --pack again.kpack | tail -1
    "$KILN" pack verify again.kpack
)
printf 'this is no kernel\n' >app/two.fake
t warm app/a.json --target fake:0
t warm app/a.json --target fake:0 --pack none.kpack
# So is a manifest whose kernel is not in its source.
printf '#include "h.fake"\nkernel deux x:floats\nx = x 1 +\n' >app/two.fake
t warm app/a.json --target fake:0
ls none.kpack 2>/dev/null
t warm app/a.json
t warm app/a.json --target nothing:0
t warm app/a.json --target fake:0,vulcan:spirv
t warm app/a.json --target fake:9
t warm app/absent.json --target fake:0
KILN_COMPILE_JOBS=many
export KILN_COMPILE_JOBS
t warm app/a.json --target fake:0
unset KILN_COMPILE_JOBS
printf '#include "h.fake"\nkernel two x:floats\nx = x 1 +\n' >app/two.fake
t warm app/a.json --target fake:0 --pack /dev/null/app.kpack
t warm app/a.json --target fake:0 --cache-dir /dev/null/nowhere
# Variants: the kernel's own form alone, until kiln tune chose another one; all with --variants. What
# is tuned and run then compiles nothing.
cat >app/slow.fake <<'END'
kernel f x:floats y:floats
y = x 1 + x + 0 + 0 + 0 +
END
cat >app/quick.fake <<'END'
kernel f x:floats y:floats
y = x FACTOR * 1 +
END
cat >app/v.json <<'END'
{"kiln_manifest": 1, "kernels": [
  {"name": "f", "sources": {"fake": "slow.fake", "opencl-c": "other.cl"}, "defines": {"FACTOR": "2"},
   "args": [{"name": "x", "kind": "in", "type": "f32", "shape": [64], "init": {"random": [0, 1]}},
            {"name": "y", "kind": "out", "type": "f32", "shape": [64]}],
   "launch": {"global": [64], "local": [4]},
   "variants": {"fake": [
     {"name": "group8", "launch": {"local": [8]}},
     {"name": "quick", "source": "quick.fake"},
     {"name": "wrong", "source": "quick.fake", "defines": {"FACTOR": "0.5"}}],
    "opencl-c": [{"name": "group16", "launch": {"local": [16]}}]}},
  {"name": "g", "sources": {"opencl-c": "other.cl"},
   "args": [{"name": "x", "kind": "inout", "type": "f32", "shape": [64]}], "launch": {"global": [64]},
   "variants": {"opencl-c": [{"name": "group16", "launch": {"local": [16]}}]}}]}
END
KILN_CACHE_DIR=$PWD/variants
export KILN_CACHE_DIR
compiles() { "$KILN" stats --json | grep '"compiles"'; }
t warm app/v.json --target fake:0 -j1
t warm app/v.json --target fake:0,fake:1 --variants -j1 --pack variants.kpack
t warm app/v.json --target fake:0 --variants --used --max 3 -j1
KILN_FAKE_PROBE='library missing' t warm app/v.json --target fake:0 --variants -j1
"$KILN" warm app/v.json --target fake:0 --variants -j1 --json | grep -E '"(variant|skipped|there)"'
compiles
"$KILN" tune app/v.json -b fake --kernel f --budget 1h --json | grep -E '^      "(variant|from)"'
compiles
# Elsewhere, by the choice alone.
"$KILN" pack create tuned.kpack >/dev/null
KILN_CACHE_DIR=$PWD/chosen
KILN_PACKS=$PWD/tuned.kpack
export KILN_PACKS
t warm app/v.json --target fake:0 -j1
t warm app/v.json --target fake:1 -j1
"$KILN" run app/v.json -b fake --kernel f --repeat 1 --json | grep -E '"(variant|origin|compiles)"'
unset KILN_PACKS
# Into a cache that is only read nothing can be put; what is there already can be packed.
KILN_READONLY=1 t warm app/a.json --target fake:0 --pack /dev/null/none.kpack -j1
KILN_READONLY=1 t warm app/a.json --target fake:0 -j1
"$KILN" warm app/a.json --target fake:0 >/dev/null 2>&1
KILN_READONLY=1 t warm app/a.json --target fake:0 --pack read.kpack -j1
KILN_CACHE_DIR=$PWD/small KILN_CACHE_MAX_SIZE=1K t warm app/a.json --target fake:0 -j1
# A variant that does not compile is reported like a kernel.
echo 'y = nothing' >app/quick.fake
t warm app/v.json --target fake:0 --variants -j1
# Equal entries give equal packs, however many jobs made them: these are too large to wait for the
# dictionary, so that each is written as soon as it is added.
mkdir big
list=
for n in 1 2 3 4 5 6; do
    awk -v n=$n 'BEGIN { printf "kernel k%d x:floats\nx = x 1 +\n", n
        for (i = 0; i < 4000; i++) printf "warning: %d %d\n", i, i * 7919 + n }' >big/k$n.fake
    list="$list$(kernel k$n fake k$n.fake),"
done
printf '{"kiln_manifest": 1, "kernels": [%s]}\n' "${list%,}" >big/m.json
KILN_CACHE_DIR=$PWD/big/cache
for n in 1 2 3 4 5 6; do
    "$KILN" warm big/m.json --target fake:0 --pack big/$n.kpack -j $((n == 1 ? 1 : 4)) | tail -1 | sed 's/^[^:]*: //'
done
sha256sum big/*.kpack | sed 's/ .*//' | uniq -c
echo "-- what is only warmed needs neither arguments nor a launch"
echo '{"kiln_manifest": 1, "kernels": [{"name": "one", "sources": {"fake": "app/one.fake"}}]}' >bare.json
t warm bare.json -t fake:0
t run bare.json
# What fails for every kernel is said once.
printf '$ kiln warm --target cpu:x86-64-v9 manifest.json\n'
status=0
"$KILN" warm --target cpu:x86-64-v9 "$SOURCE_DIR/kernels/manifest.json" 2>said >/dev/null || status=$?
cat said
echo "[$status]"
