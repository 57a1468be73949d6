# shellcheck shell=sh disable=SC2069
# GLSL: what lands in the file that -o names, what has no version, and what is no compute shader.
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
