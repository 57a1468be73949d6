# shellcheck shell=sh
# HIP C++ through hipRTC's DLLs, all of them fakes: where they are found, what is compiled again, what is said
# without them.
hip() { "$KILN" compile "$@" -t hip:gfx1030 --json 2>&1 | grep -E '"(origin|error)":|kiln:' | sed 's/,$//'; }
program=$(sed -n "s/^exec .* '\(.*\)'.*/\1/p" "$KILN")
program=${program%/*}
sdk=$FAKE_TOOLKITS/fakerocm/bin
mkdir -p sdk/bin other/bin
cp "$sdk"/*.dll sdk/bin
printf '#include "half.h"\nextern "C" __global__ void k(float *x) { *x = HALF; }\n' >k.hip
echo '#define HALF 1' >half.h
export FAKENVRTC_LOG="$PWD/log"
echo none; t compile k.hip -t hip:gfx1030
export HIP_PATH="$PWD/sdk"
"$KILN" doctor -b hip | grep -o 'there is no amdhip64.*System32'
echo first; hip k.hip -o k.hsaco
sed "s#Z:$PWD#TMP#g" log
echo again; hip k.hip
wc -l <log # nothing was opened
head -c 4 k.hsaco | tail -c 3; echo
echo '#define HALF 2' >half.h
echo header; hip k.hip
cp "$FAKE_TOOLKITS"/fakerocm_next/bin/hiprtc0604.dll sdk/bin
echo replaced; hip k.hip
printf '#error here\n' >bad.hip
t compile bad.hip -t hip:gfx1030
t compile k.hip -t hip:gfx942
# The newest of a directory; what only looks like one.
cp "$sdk"/hiprtc0604.dll sdk/bin/hiprtc0507.dll
cp "$sdk"/hiprtc0604.dll sdk/bin/hiprtc06041.dll
cp "$sdk"/hiprtc0604.dll sdk/bin/hiprtc.dll
"$KILN" doctor -b hip | grep -o 'hiprtc[0-9]*[.]dll'
# Without the compiler that it opens by name.
cp "$sdk"/hiprtc*.dll other/bin
export HIP_PATH="$PWD/other"
echo 'no compiler'; hip k.hip
unset HIP_PATH
# Next to the program.
mkdir beside
cp "$program"/*.exe "$program"/*.dll "$sdk"/*.dll beside
sed "s#$program/#$PWD/beside/#" "$KILN" >beside/kiln
chmod +x beside/kiln
KILN=$PWD/beside/kiln
"$KILN" clear >clear.out
echo beside; hip k.hip
