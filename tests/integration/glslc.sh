#!/bin/sh
# glslc.sh KILN: kiln compile in glslc's place, called by ninja: what is built is SPIR-V, a header
# that is touched rebuilds what includes it and nothing else, and where glslc is installed both make
# the same bytes and list the same headers.
set -eu
kiln=$1
command -v ninja >/dev/null || { echo "SKIP: ninja is not installed" && exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
for variable in $(env | sed -n 's/^\(KILN_[A-Z_]*\)=.*/\1/p'); do
    [ "$variable" = KILN_LIBEXEC ] || unset "$variable"
done
export HOME="$folder/home" KILN_CACHE_DIR="$folder/cache"
mkdir home inc 'inc dir'

printf '#define SCALE 2.0\n' >inc/scale.glsl
printf '#include "deep one.glsl"\n' >'inc dir/more.glsl'
printf '#define MORE 1.0\n' >'inc dir/deep one.glsl'
shader() { # NAME HEADER
    cat >"$1.comp" <<END
#version 450
#extension GL_GOOGLE_include_directive : require
#include "$2"
layout(local_size_x = 64) in;
layout(binding = 0) buffer B { float a[]; };
void main() { a[gl_GlobalInvocationID.x] *= VALUE; }
END
}
shader one scale.glsl
shader two more.glsl
"$kiln" compile one.comp -Iinc -DVALUE=SCALE -t vulkan:spirv >/dev/null 2>why || {
    grep -q "shaderc library" why && echo "SKIP: no shaderc" && exit 77
    cat why && exit 1
}

write_rules() { # COMPILER
    cat <<END
rule shader
  command = $1 -fshader-stage=compute --target-env=vulkan1.2 -O -MD -MF \$out.d \$flags -c \$in -o \$out
  depfile = \$out.d
  deps = gcc
build one.spv: shader one.comp
  flags = -I inc -DVALUE=SCALE
build two.spv: shader two.comp
  flags = "-Iinc dir" -DVALUE=MORE
END
}
write_rules "'$kiln' compile" >build.ninja

fail() { echo "$1"; cat log; exit 1; }
build() { ninja >log 2>&1 || fail "ninja failed"; }
build
[ "$(grep -vc '^\[' log)" = 0 ] || fail "kiln printed something"
for name in one two; do
    magic=$(od -An -t x4 -N 4 $name.spv | tr -d ' ')
    [ "$magic" = 07230203 ] || fail "$name.spv is not SPIR-V: $magic"
    [ ! -f $name.spv.d ] || fail "ninja has not read $name.spv.d"
done
build
grep -q 'no work to do' log || fail "a second build builds"
built() { # WHAT EXPECTED: the outputs that are older than the touch are not among them
    for name in one two; do
        if [ -n "$(find $name.spv -newer stamp)" ]; then echo $name; fi
    done | tr '\n' ' '
}
touched() { # FILE EXPECTED
    sleep 0.05
    touch stamp
    sleep 0.05
    touch "$1"
    build
    got=$(built)
    [ "$got" = "$2" ] || fail "after $1: built '$got', expected '$2'"
}
touched inc/scale.glsl "one "
touched 'inc dir/deep one.glsl' "two "
touched two.comp "two "
# An edit gives other bytes; the touch above did not compile anything.
cp one.spv before.spv
printf '#define SCALE 3.0\n' >inc/scale.glsl
build
cmp -s one.spv before.spv && fail "the edited header is not in one.spv"
"$kiln" stats --json | grep -q '"compiles": 4' || fail "$("$kiln" stats)"

# The list by itself: what is depended on, quoted, under the name that was asked for.
"$kiln" compile two.comp '-Iinc dir' -DVALUE=MORE -MD -MF two.d -MT 'other name' -o two.spv
tr -d '\n' <two.d | grep -qF 'other\ name: \ two.comp \ inc\ dir/more.glsl \ inc\ dir/deep\ one.glsl' || fail "$(cat two.d)"
"$kiln" compile one.comp -Iinc -DVALUE=SCALE -MD -o one.spv
[ -s one.spv.d ] || fail "no one.spv.d"

# Headers that cannot be known: no list, which would be wrong one day, and the reason.
cat >bypass.c <<'END'
#include <kiln_kernel.h>
KILN_KERNEL(bypass, KILN_INOUT(float, x))
{
    KILN_ITEMS_X(i) { x[i] += 1; }
}
END
if "$kiln" compile bypass.c -b cpu -o bypass.bin >log 2>&1; then
    "$kiln" compile bypass.c -b cpu -o bypass.bin -MD -X -save-temps >log 2>&1 && fail "a list of unknown headers"
    grep -q 'its headers cannot be known: .' log || fail "another reason"
    [ ! -f bypass.bin.d ] || fail "a list that is not whole"
else
    fail "the C kernel does not compile"
fi

# The same bytes and the same headers as glslc.
if command -v glslc >/dev/null; then
    for options in "" -O --target-env=vulkan1.2 "--target-env=vulkan1.0 -O0" "--target-env=vulkan1.2 -O" "--target-env=vulkan1.1 -Os -std=460" \
        "--target-env=vulkan1.2 --target-spv=spv1.3 -O"; do
        # shellcheck disable=SC2086
        glslc $options -w -Iinc -DVALUE=SCALE -fshader-stage=comp -c one.comp -o expected.spv
        # shellcheck disable=SC2086
        "$kiln" compile $options -w -Iinc -DVALUE=SCALE -fshader-stage=comp -c one.comp -o got.spv
        cmp expected.spv got.spv || fail "$options"
    done
    echo "the same bytes as glslc"
fi
echo "fine"
