#!/bin/sh
# named_arch.sh KILN FAKECUDA TAPE: a target that is named by --arch opens no driver, as one that is named by
# --target or by a recording; the driver's log of calls says so.
set -eu
kiln=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
for variable in $(env | sed -n 's/^\(KILN_[A-Z_]*\)=.*/\1/p'); do
    [ "$variable" = KILN_LIBEXEC ] || unset "$variable"
done
export HOME="$folder" LD_LIBRARY_PATH="$2/good" CUDA_PATH="$2/toolkit" FAKECUDA_LOG="$folder/log"
printf '__global__ void one(float *x)\n{\n    x[0] = 1.0f;\n}\n' >one.cu

compile() { # CACHE OPTION...
    cache=$1
    shift
    KILN_CACHE_DIR="$folder/$cache" "$kiln" compile one.cu "$@" >out 2>&1 || { cat out; exit 1; }
}
compile arch -b cuda --arch sm_80
compile target --target cuda:sm_80
"$3" recording walk cuda:sm_80 1 one.cu
KILN_CACHE_DIR="$folder/recorded" "$kiln" warm recording >out 2>&1 || { cat out; exit 1; }
grep -q ' compiled ' out || { cat out; exit 1; }
[ ! -e log ] || { echo "a driver was opened for a named target:"; cat log; exit 1; }
compile device -b cuda
[ -s log ] || { echo "the driver keeps no log: this test shows nothing"; exit 1; }
echo "ok: --arch opens no driver"
