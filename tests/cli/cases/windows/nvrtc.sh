# shellcheck shell=sh
# CUDA C++ through NVRTC's DLLs, all of them fakes: where they are found, what is compiled again, what is said
# without them.
cuda() { "$KILN" compile "$@" --json 2>&1 | grep -E '"(origin|error)":|kiln:' | sed 's/,$//'; }
program=$(sed -n "s/^exec .* '\(.*\)'.*/\1/p" "$KILN")
program=${program%/*}
mkdir -p toolkit/bin/x64 toolkit/include old/bin old/include
cp "$FAKE_TOOLKITS"/fakenvrtc/bin/x64/*.dll toolkit/bin/x64
cp toolkit/bin/x64/*.dll old/bin
cp toolkit/bin/x64/nvrtc64_130_0.dll toolkit/bin/x64/nvrtc64_130_0.alt.dll
echo '#define HALF 1' >toolkit/include/cuda_fp16.h
printf '#include <cuda_fp16.h>\nextern "C" __global__ void k(float *x) { *x = HALF; }\n' >k.cu
export FAKENVRTC_LOG="$PWD/log"
echo none; t compile k.cu -t cuda:sm_90
export CUDA_PATH="$PWD/toolkit"
"$KILN" doctor -b cuda | grep -o 'NVRTC 13.0'
echo first; cuda k.cu -t cuda:sm_90 -o k.cubin
echo again; cuda k.cu -t cuda:sm_90
sed "s#Z:$PWD#TMP#g" log
head -c 4 k.cubin; echo
# A header of the toolkit is followed, and another build of the library is another compiler.
echo '#define HALF 2' >toolkit/include/cuda_fp16.h
echo header; cuda k.cu -t cuda:sm_90
cp "$FAKE_TOOLKITS"/fakenvrtc_next/bin/x64/nvrtc64_130_0.dll toolkit/bin/x64
echo replaced; cuda k.cu -t cuda:sm_90
# PTX, wrong text, and what nvJitLink says.
echo ptx; cuda k.cu -t cuda:compute_90
printf '#error here\n' >bad.cu
t compile bad.cu -t cuda:sm_90
echo link; cuda k.cu -t cuda:sm_90 -X -dlto
# As CUDA 12 has them, and without the builtins.
export CUDA_PATH="$PWD/old"
echo '#define HALF 2' >old/include/cuda_fp16.h
echo old; cuda k.cu -t cuda:sm_90
rm old/bin/nvrtc-builtins64_130.dll
echo 'no builtins'; t compile k.cu -t cuda:sm_90
unset CUDA_PATH
# Next to the program.
mkdir beside
cp "$program"/*.exe "$program"/*.dll old/bin/*.dll toolkit/bin/x64/nvrtc-builtins64_130.dll beside
sed "s#$program/#$PWD/beside/#" "$KILN" >beside/kiln
chmod +x beside/kiln
KILN=$PWD/beside/kiln
echo beside; cuda k.cu -t cuda:sm_90 -I "Z:$PWD/old/include"
