# shellcheck shell=sh disable=SC2069
# GLSL: what lands in the file that -o names, what has no version, and what is not a compute shader.
need vulkan
printf '#version 450\nlayout(local_size_x=1) in;\nvoid main() {}\n' >s.comp
printf 'layout(local_size_x=1) in;\nvoid main() {}\n' >nov.comp
printf '#version 450\nvoid main() { gl_Position = vec4(0); }\n' >v.vert
magic() { od -An -tx1 -N4 "$1"; }
"$KILN" compile s.comp -o s.spv >/dev/null 2>&1
magic s.spv
"$KILN" compile s.comp -b vulkan -d vulkan:0 -o s.bin 2>&1 >/dev/null
[ "$(magic s.bin)" != "$(magic s.spv)" ] && echo "not SPIR-V"
"$KILN" compile s.comp -t vulkan:spirv -o t.bin 2>&1 >/dev/null
magic t.bin
# Nothing but the answer on standard output: this is JSON.
"$KILN" compile nov.comp -t vulkan:spirv --json 2>err >out
echo "[$?]"
head -1 out
wc -l <out | tr -d ' '
cat err
"$KILN" compile -x glsl v.vert -t vulkan:spirv 2>&1 >/dev/null | head -1
"$KILN" compile v.vert 2>&1 >/dev/null || echo "[$?]"
# Debug information names files as they are given: nobody gets another one's.
mkdir -p one two/inc
printf '#version 450\n#include "h.glsl"\nlayout(local_size_x = N) in;\nvoid main() {}\n' >one/a.comp
echo '#define N 4' >one/h.glsl
cp one/a.comp two/b.comp
cp one/a.comp two/a.comp
cp one/h.glsl two/inc
named() { tr -c '[:print:]' '\n' <"$1" | grep -E '(one|two)/'; }
"$KILN" compile -g one/a.comp -o 1.spv >/dev/null 2>&1
"$KILN" compile -g -I two/inc two/b.comp -o 2.spv >/dev/null 2>&1
"$KILN" compile -g -I two/inc two/a.comp -o 3.spv >/dev/null 2>&1
for file in 1 2 3; do
    named "$file.spv"
done
"$KILN" compile -g one/a.comp -o 4.spv --json 2>&1 | grep '"origin"'
cmp 1.spv 4.spv
# Without it they share one entry.
"$KILN" compile one/a.comp -o 5.spv --json 2>&1 | grep -c '"origin": "compiled"'
"$KILN" compile -I two/inc two/b.comp -o 6.spv --json 2>&1 | grep -c '"origin": "disk"'
