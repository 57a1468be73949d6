# shellcheck shell=sh disable=SC2086
# A recording, compiled again: for its own targets and for others, in parts, from the cache's own one;
# damaged, cut, foreign, and of a newer kiln.
[ -n "${TAPE:-}" ] || exit 77
mkdir scratch && export TMPDIR="$PWD/scratch" # other tests replay at the same time
printf '#version 450\nlayout(local_size_x = 1) in;\nlayout(std430, binding = 0) buffer B { float p[]; };\nvoid main() { p[0] += 1.0; }\n' >scale.comp
printf '#version 450\nnot a shader\n' >broken.comp
"$TAPE" rec walk vulkan:spirv 3 scale.comp
"$TAPE" rec walk vulkan:spirv 1 broken.comp
echo "3 of 4 are compiled; the fourth is listed and keeps nothing else from being made"
"$KILN" warm rec --json -j2 --pack no.kpack 2>err | grep -E '"(result|kernel|key|failed)"' | sort | uniq -c | sed 's/^ *//'
grep -c 'broken.comp' err
rm -rf rec/uses && "$TAPE" rec walk vulkan:spirv 3 scale.comp
echo "a second run compiles nothing, and the pack has them all"
"$KILN" warm rec --pack all.kpack --json | grep -E '"(result|pack_entries)"' | sort | uniq -c | sed 's/^ *//'
echo "in two parts"
for part in 1 2; do
    "$KILN" warm rec --shard $part/2 --cache-dir "$PWD/cache.$part" --pack part$part.kpack --json | grep -c '"result": "compiled"'
done
"$KILN" pack merge merged.kpack part1.kpack part2.kpack --json | grep '"added"'
echo "what a target does not take is left out; the newest are made first where there is a bound"
"$KILN" warm rec --target cuda:sm_90,vulkan:spirv --json | grep -c '"result"'
"$KILN" warm rec --used --max 1 --json | grep -E '"result"|"kernel"'
"$KILN" warm rec --for 0s --json | grep -E '"(result|reason)"' | sort | uniq -c | sed 's/^ *//'
touch -d '3 days ago' rec/uses/*/*
"$KILN" warm rec --within 2d --json | grep -c '"result"'
"$KILN" warm rec --within 4d --json | grep -c '"result"'
echo "the cache's own"
t warm --stale
cp -r rec "$KILN_CACHE_DIR/recording"
"$KILN" warm --stale --json | grep -c '"result": "there"'
echo "trouble"
t warm
use=$(find rec/uses -type f | sort | head -n 1)
printf junk >"$use"
"$KILN" warm rec 2>&1 >/dev/null | sed -E 's#uses/.*:#USE:#'
program=$(find rec/programs -type f | sort | head -n 1)
head -c 50 "$program" >short && cp short "$program"
"$KILN" warm rec 2>&1 >/dev/null | sed -E 's#uses/.*:#USE:#' | grep -c damaged
find rec/objects -type f -exec rm {} +
"$KILN" warm rec --target vulkan:spirv 2>&1 | grep -c 'the recording lacks it'
printf 'kiln-recording 2\n' >rec/kiln-recording
t warm rec
printf 'a letter\n' >rec/kiln-recording
t warm rec
mkdir other
t warm --stale other
find scratch -maxdepth 1 -name 'kiln-replay-*' | grep -c . | sed 's/^[^0]*$/left behind/'
