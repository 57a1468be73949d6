#!/bin/sh
# foreign.sh BUILD [PROGRAM...]: what unmodified programs of Debian build with OpenCL, built again:
# by the driver alone, through an empty cache, and in a second process through the cache that the
# first one filled. By hand, on a machine with PoCL:
#
#     apt-get install clpeak hashcat ffmpeg libclblast-dev python3-pyopencl opencl-c-headers
#     sh bench/foreign/foreign.sh build/release
#
# Each program runs once under the layer (bench/foreign/layer.c), which writes its jobs to
# BUILD/bench/foreign/PROGRAM; remove that directory to take them again. Every run that is timed has
# an empty directory for PoCL's own cache, so that only kiln remembers. Times are processor time, of all
# threads. FOREIGN_ROUNDS (default 3) is how many rounds there are; the table has medians.
set -eu
build=$(cd "$1" && pwd)
shift
here=$(cd "$(dirname "$0")" && pwd)
programs=${*:-clpeak clblast ffmpeg pyopencl hashcat hashcat_modes}
rounds=${FOREIGN_ROUNDS:-3}
layer=$build/bench/libbench_foreign_layer.so
replay=$build/bench/bench_foreign
jobs=$build/bench/foreign
for file in "$layer" "$replay"; do
    [ -e "$file" ] || { echo "foreign: $file is not built"; exit 1; }
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$jobs"

# Runs a program under the layer with a home of its own: hashcat and PoCL keep caches there.
under_layer() {
    rm -rf "${scratch:?}/home" && mkdir -p "$scratch/home/pocl"
    HOME=$scratch/home XDG_CACHE_HOME=$scratch/home/.cache POCL_CACHE_DIR=$scratch/home/pocl \
        OPENCL_LAYERS=$layer FOREIGN_JOBS=$jobs/$name timeout 900 "$@" >>"$scratch/log" 2>&1 </dev/null
}

take_clpeak() {
    under_layer clpeak --kernel-latency || true # its exit code says nothing
}

take_clblast() {
    "${CC:-cc}" -O1 -o "$scratch/clblast" "$here/clblast.c" -lclblast -lOpenCL
    under_layer "$scratch/clblast"
}

take_ffmpeg() {
    for filter in avgblur=2 boxblur=2:1 unsharp sobel prewitt roberts dilation erosion nlmeans=s=1:p=3:r=3 \
        convolution transpose=dir=clock colorkey=green pad=iw+8:ih+8; do
        filter_name=${filter%%=*}
        rest=${filter#"$filter_name"}
        case $filter_name in colorkey | transpose) format=rgba ;; *) format=yuv420p ;; esac
        under_layer ffmpeg -v error -init_hw_device opencl=cl -filter_hw_device cl -f lavfi \
            -i testsrc=s=64x64:d=0.04 -vf \
            "format=$format,hwupload,${filter_name}_opencl$rest,hwdownload,format=$format" -f null - || true
    done
}

take_pyopencl() {
    under_layer /usr/bin/python3 -c '
import numpy, pyopencl, pyopencl.array, pyopencl.clrandom
from pyopencl.elementwise import ElementwiseKernel
from pyopencl.reduction import ReductionKernel
from pyopencl.scan import GenericScanKernel
context = pyopencl.Context([pyopencl.get_platforms()[0].get_devices()[0]])
queue = pyopencl.CommandQueue(context)
a = pyopencl.array.to_device(queue, numpy.arange(1024, dtype=numpy.float32))
b = 2 * a + a * a
ElementwiseKernel(context, "float *x", "x[i] = x[i] * x[i]", "square")(a)
ReductionKernel(context, numpy.float32, "0", "a+b", map_expr="x[i]", arguments="__global float *x")(a).get()
GenericScanKernel(context, numpy.int32, "__global int *x", "x[i]", "a+b", "0", "x[i] = item")(
    pyopencl.array.to_device(queue, numpy.ones(1024, dtype=numpy.int32)))
pyopencl.array.sum(b).get()
pyopencl.array.dot(a, b).get()
'
}

# MD5 by brute force: its kernels, the markov chains' and the shared ones. Other modes: one line each.
take_hashcat() {
    under_layer hashcat --force --potfile-disable --quiet -D 1 -m 0 -a 3 8743b52063cd84097a65d1633f5c74f5 '?d?d' || true
}

# Ten modes by brute force, with the options that hashcat gives them: those of its mode 0, from the jobs of hashcat.
take_hashcat_modes() {
    options=$(head -1 "$(find "$jobs/hashcat" -name '*.job' | head -1)")
    for mode in 00000 00010 00100 00300 00900 01000 01400 01700 05000 05100; do
        { printf '%s\n' "$options"; cat "/usr/share/hashcat/OpenCL/m${mode}_a3-optimized.cl"; } >"$jobs/$name/$mode.job"
    done
}

installed() {
    case $1 in
    clblast) [ -f /usr/include/clblast_c.h ] ;;
    pyopencl) /usr/bin/python3 -c 'import pyopencl' 2>/dev/null ;;
    hashcat_modes) [ -n "$(ls "$jobs/hashcat" 2>/dev/null)" ] && [ -d /usr/share/hashcat/OpenCL ] ;;
    *) command -v "$1" >/dev/null ;;
    esac
}

# One timed process: MODE, and the cache. PoCL remembers nothing.
timed() {
    rm -rf "$scratch/pocl" && mkdir "$scratch/pocl"
    POCL_CACHE_DIR=$scratch/pocl "$replay" "$1" "$jobs/$name" "$2"
}

median() { sort -n | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
column() { cut -d' ' -f"$2" "$scratch/$name.$1" | median; }

echo "machine: $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1), $(nproc) processors; $(date -u +%F)"
echo
echo "| program | jobs | plain cpu ms | cold cpu ms | cold / plain | at exit ms | capture ms | warm ms | warm / plain | warm: compiled, found, bypassed |"
echo "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |"
for name in $programs; do
    if ! installed "$name"; then
        echo "foreign: $name is not installed" >&2
        continue
    fi
    if [ ! -d "$jobs/$name" ]; then
        mkdir "$jobs/$name"
        "take_$name" || { tail -5 "$scratch/log" >&2; }
    fi
    [ -n "$(ls "$jobs/$name")" ] || { echo "foreign: $name built nothing" >&2; rmdir "$jobs/$name"; continue; }
    for round in $(seq "$rounds"); do
        rm -rf "$scratch/cold"
        timed plain none >>"$scratch/$name.plain"
        timed kiln "$scratch/cold" >>"$scratch/$name.cold"
        # Once: PoCL compiles every kernel of every program for it.
        [ "$round" != 1 ] || { rm -rf "$scratch/cache" && timed capture "$scratch/cache" >>"$scratch/$name.capture"; }
        timed kiln "$scratch/cache" >>"$scratch/$name.warm"
    done
    awk -v name="$name" -v jobs="$(tail -1 "$scratch/$name.plain" | cut -d' ' -f1)" \
        -v failed="$(tail -1 "$scratch/$name.plain" | cut -d' ' -f2)" \
        -v plain="$(column plain 3)" -v cold="$(column cold 3)" -v leave="$(column cold 9)" \
        -v capture="$(column capture 4)" -v warm="$(column warm 3)" \
        -v counts="$(tail -1 "$scratch/$name.warm" | cut -d' ' -f5-7)" 'BEGIN {
            gsub(" ", ", ", counts)
            if (failed > 0) jobs = jobs " (" failed " do not build)"
            printf "| %s | %s | %.0f | %.0f | %.2f | %.0f | %.0f | %.1f | %.3f | %s |\n", name, jobs,
                plain, cold, cold / plain, leave, capture, warm, warm / plain, counts
        }'
done
