# shellcheck shell=sh disable=SC2086
need cpu
cat >gain.h <<'END'
#define GAIN 3.0f
END
cat >k.c <<'END'
#include <kiln_kernel.h>
#include "gain.h"

KILN_KERNEL(scale, KILN_VALUE(float, a), KILN_IN(float, x), KILN_OUT(float, y))
{
    KILN_ITEMS_X(i)
    {
        y[i] = GAIN * a * x[i] + BIAS;
    }
}
END
cat >reference.c <<'END'
#include <kiln_kernel.h>

KILN_KERNEL(scale_reference, KILN_VALUE(float, a), KILN_IN(float, x), KILN_OUT(double, y))
{
    KILN_ITEMS_X(i)
    {
        y[i] = 3.0 * (double)a * (double)x[i] + 1.0;
    }
}
END
cat >m.json <<'END'
{"kiln_manifest": 1, "kernels": [
  {"name": "scale", "sources": {"c": "k.c"}, "defines": {"BIAS": "1.0f"},
   "args": [{"name": "a", "kind": "value", "type": "f32", "value": 0.5},
            {"name": "x", "kind": "in", "type": "f32", "shape": [1000], "init": {"random": [-1, 1]}},
            {"name": "y", "kind": "out", "type": "f32", "shape": [1000]}],
   "launch": {"global": [1000], "local": [64]}, "tolerance": {"absolute": 1e-6},
   "reference": {"file": "reference.c", "entry": "scale_reference"}}]}
END
# E4, E5: directories that depend on the current one are followed, and an empty element is the current one.
mkdir lists lists/inc lists/other
echo '#include <kiln_kernel.h>
#include <value.h>
KILN_KERNEL(one, KILN_OUT(float, y)) { KILN_ITEMS_X(i) { y[i] = VALUE; } }' >lists/k.c
c() {
    (cd "${2-lists}" && CPATH=$1 "$KILN" compile -b cpu --json "${3-}k.c" 2>&1 | sed -n -E 's/.*"(origin|reason)": "(.+)".*/\2/p') |
        sed "s|\$| with CPATH=$1|"
}
for list in inc "/no/such:" ":/no/such" : . inc:/no/such /no/such:inc; do
    rm -rf lists/inc/value.h lists/value.h
    case $list in *inc*) header=lists/inc/value.h ;; *) header=lists/value.h ;; esac
    echo "#define VALUE 1 /* $list */" >$header
    c "$list"
    echo "#define VALUE 2 /* $list */" >$header
    c "$list"
    c "$list"
done
echo "#define VALUE 3" >lists/inc/value.h
mkdir lists/other/inc
echo "#define VALUE 4" >lists/other/inc/value.h
c inc
c inc lists/other ../
# E6: variables that gcc and ld read, and the same compile without them.
v() {
    (cd lists && CPATH=inc env "$@" "$KILN" compile -b cpu --json k.c 2>&1 | sed -n -E 's/.*"(origin|reason)": "(.+)".*/\2/p') |
        sed "s|\$| with $*|"
}
mkdir lists/specs_of
printf '*cc1:\n+ -fno-tree-pre\n\n' >lists/specs_of/specs
for setting in A=1 LD_RUN_PATH=/odd LD_RUN_PATH=/odd A=1 GNUTARGET=elf64-x86-64 LPATH=/odd LIBRARY_PATH=/odd LIBRARY_PATH=/odd:specs_of \
    DEPENDENCIES_OUTPUT=deps; do
    v "$setting"
done
# The width of the error's digits is the processor's business.
r() { t "$@" | sed -E 's/[0-9.]+e-[0-9]+/E/'; }
r run m.json -b cpu
r run m.json -b cpu
sed -i 's/3.0f/3.5f/' gain.h
r run m.json -b cpu | sed -E 's/y\[.*/y.../'
t run k.c -b cpu -g 8 -DBIAS=0.0f --arg value:f32=1 --arg in:f32:8=fill:2 --arg out:f32:8 -I nowhere
t run k.c -b cpu -g 8 --arg value:f32=1 --arg in:f32:8=fill:2 --arg out:f32:8 2>&1 |
    grep -c 'k.c:[0-9]*:[0-9]*: error'
t run k.c -b cpu -g 8 -DBIAS=0 --arg value:f64=1 --arg in:f32:8=fill:2 --arg out:f32:8
t run k.c -b cpu -g 8 -DBIAS=0 --arg value:f32=1 --arg in:i32:8=fill:2 --arg out:f32:8
# With no compiler a kernel in C does not run, and one that is built in does.
export KILN_PATH=/nowhere
t run k.c -b cpu -g 8 --no-cache -DBIAS=7.0f --arg value:f32=1 --arg in:f32:8 --arg out:f32:8 |
    sed '1,2d;s/:.*//'
t run "$SOURCE_DIR/kernels/manifest.json" -b cpu --kernel saxpy | sed -E 's/[0-9.]+e-[0-9]+/E/'
