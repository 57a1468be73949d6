# shellcheck shell=sh disable=SC2086
need opencl
cat >k.cl <<'END'
#include "gain.h"
__kernel void scale(float a, __global const float *x, __global float *y, __local float *part)
{
    size_t i = get_global_id(0);
    part[get_local_id(0)] = x[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    y[i] = GAIN * a * part[get_local_id(0)];
}
END
mkdir include
echo '#define GAIN 2.0f' >include/gain.h
run="run k.cl -b opencl -d opencl:0 -I include -g 64 -l 16 --arg value:f32=1.5 --arg in:f32:64=random:0:1"
t $run --arg out:f32:64 --arg local:f32:16 --save 2=y.bin
t $run --arg out:f32:64 --arg local:f32:16 --expect 2=y.bin
t $run --arg out:f32:64 --arg local:f32:16 --expect 2=y.bin -X -cl-mad-enable
t $run --arg out:f32:64
t $run --arg out:i32:64 --arg local:f32:16
t $run --arg out:f32:64 --arg value:f32=1
echo '#define GAIN 2.0f +' >include/gain.h
t $run --arg out:f32:64 --arg local:f32:16 2>&1 | grep -c 'k.cl:[0-9]*:[0-9]*:'
t compile k.cl -b opencl 2>&1 | grep -c 'gain.h'
echo '#define GAIN 4.0f' >include/gain.h
t compile k.cl -b opencl -I include -o k.bin
t compile k.cl -b opencl -I include -o k.bin --json | sed 's/"target".*/"target"/'
[ -s k.bin ] && echo binary
# PoCL has no device where it cannot write.
POCL_CACHE_DIR=/proc/nowhere "$KILN" doctor -b opencl 2>/dev/null | sed -n '/PoCL write/p'
POCL_CACHE_DIR=/proc/nowhere "$KILN" doctor -b opencl 2>/dev/null | sed -n '/^verdict/p'
# What a drop-in looks up has a key of its own, which explain knows.
printf '__kernel void scale(__global float *x) { x[get_global_id(0)] *= N; }\n' >scale.cl
"$KILN" compile --drop-in scale.cl -b opencl -X -DN=2 >/dev/null
"$KILN" explain scale.cl -b opencl -X -DN=2 | sed -n 1p
"$KILN" explain --drop-in scale.cl -b opencl -X -DN=2 | sed '/key/d'
"$KILN" explain --drop-in scale.cl -b opencl -X -DN=3 | sed -n '1p; s/.*, scale.*, which/name, which/p; /->/p'
