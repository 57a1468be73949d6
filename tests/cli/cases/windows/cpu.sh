# shellcheck shell=sh
# Kernels in C: compiled, found again, wrong, without a compiler; and what is left of it: nothing.
temporary=$WINEPREFIX/drive_c/users/$(id -un)
find "$temporary" -name 'kiln-object-*' -exec rm {} +
cat >gain.h <<'END'
#define GAIN 3.0f
END
cat >k.c <<'END'
#include <kiln_kernel.h>
#include <math.h>
#include "gain.h"

KILN_KERNEL(scale, KILN_VALUE(float, a), KILN_IN(float, x), KILN_OUT(float, y))
{
    KILN_ITEMS_X(i)
    {
        y[i] = GAIN * a * sqrtf(x[i]);
    }
}
END
# A vector of 32 bytes on the stack, which gcc does not align for one here.
cat >sum.c <<'END'
#include <kiln_kernel.h>

KILN_KERNEL_GROUP(row_sum, 64, 1, 1, KILN_IN(float, x), KILN_OUT(float, sums))
{
    _Alignas(32) float part[64] = {0};
    KILN_ITEMS_X(i)
    {
        part[KILN_LOCAL_ID(0, i)] = x[i];
    }
    float sum = 0.0F;
    for (int i = 0; i < 64; i++) {
        sum += part[i];
    }
    sums[KILN_GROUP_ID(0)] = sum;
}
END
scale="run k.c -b cpu -g 8 --arg value:f32=2 --arg in:f32:8=fill:4 --arg out:f32:8"
# shellcheck disable=SC2086
t $scale --save 2=y.bin
od -An -f -w4 -N 4 y.bin
# shellcheck disable=SC2086
t $scale --expect 2=y.bin
sed -i 's/3.0f/3.5f/' gain.h
# shellcheck disable=SC2086
t $scale --expect 2=y.bin | sed 's/y\[.*/y.../'
t run sum.c -b cpu -g 256 --arg in:f32:256=fill:1 --arg out:f32:4 --save 1=sums.bin
od -An -f -w4 -N 4 sums.bin
t run "$SOURCE_DIR/kernels/manifest.json" -b cpu --kernel softmax | sed -E 's/[0-9.]+e-[0-9]+/E/'
printf '#include <kiln_kernel.h>\nKILN_KERNEL(k, KILN_OUT(float, y))\n{\n    y[0] = missing;\n}\n' >bad.c
t compile bad.c -b cpu
sed 's/missing/missing()/' bad.c | sed '1a extern float missing(void);' >undefined.c
"$KILN" compile undefined.c -b cpu 2>&1 >/dev/null | grep -c 'undefined reference to .missing'
find "$temporary" -name 'kiln-object-*' -o -name 'kiln-cc-*'
# What a killed process left goes with the next one.
: >"$temporary/Temp/kiln-object-0123456789abcdef.dll"
# shellcheck disable=SC2086
"$KILN" $scale | grep -c disk
find "$temporary" -name 'kiln-object-*'
export KILN_CC=Z:/nowhere/gcc.exe
# shellcheck disable=SC2086
t $scale --no-cache
