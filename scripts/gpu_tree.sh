#!/bin/sh
# gpu_tree.sh [TREE]: puts everything that runs on a GPU machine without network into one directory
# (default .gpu): a release build's command, helpers, library, bench and conformance programs, and the
# libraries they need that such a machine may lack. Built here, run there: glibc there must not be
# older than here.
set -eu
cd "$(dirname "$0")/.."
tree=${1:-.gpu}
mkdir -p build-gpu
cmake --preset release -B build-gpu -DKILN_TESTS=ON >build-gpu/log 2>&1 || { tail -n 20 build-gpu/log >&2; exit 1; }
ninja -C build-gpu kiln kiln_libexec kiln-probe kiln-nvrtc kiln-shaderc kiln_shared bench_cuda_first_result bench_thousand bench_by_kiln bench_by_hand conformance dropin_opencl dropin_vulkan dropin_opengl dropin_cuda two_devices hard_cases >build-gpu/log 2>&1 || { tail -n 20 build-gpu/log >&2; exit 1; }
rm -rf "$tree"
mkdir -p "$tree/bin" "$tree/lib" "$tree/libexec/kiln"
cp build-gpu/programs/kiln/kiln build-gpu/tests/conformance/conformance \
    build-gpu/tests/conformance/dropin_opencl build-gpu/tests/conformance/dropin_vulkan \
    build-gpu/tests/conformance/dropin_opengl build-gpu/tests/conformance/dropin_cuda "$tree/bin/"
cp build-gpu/tests/device/two_devices build-gpu/tests/device/hard_cases "$tree/bin/"
cp build-gpu/bench/bench_cuda_first_result "$tree/bin/first_result"
cp build-gpu/bench/bench_thousand build-gpu/bench/by_kiln build-gpu/bench/by_hand "$tree/bin/"
cp -r build-gpu/programs/libexec/kiln/* "$tree/libexec/kiln/"
cp -P build-gpu/src/libkiln.so* "$tree/lib/"
for program in "$tree"/bin/* "$tree"/libexec/kiln/*; do
    [ -f "$program" ] || continue
    ldd "$program" | awk '/=> \// { print $1, $3 }'
done | sort -u | while read -r name path; do
    case $name in
    libzstd* | libjansson* | libnettle* | libcmocka*) cp -L "$path" "$tree/lib/$name" ;;
    esac
done
# A remote, for benchmarks: hiredis goes next to the client, Redis itself with all that it links.
if command -v redis-server >/dev/null; then
    cp "$(command -v redis-server)" "$tree/bin/"
    ldd "$tree/bin/redis-server" | awk '/=> \// { print $3 }' | grep -v -E '/(libc|libm|libdl|libpthread|librt|libstdc[+][+]|libgcc_s)\.so' |
        while read -r path; do cp -L "$path" "$tree/lib/"; done
    patchelf --set-rpath "\$ORIGIN/../lib" "$tree/bin/redis-server"
fi
if [ -e "$tree/libexec/kiln/libkiln-redis.so" ]; then
    ldd "$tree/libexec/kiln/libkiln-redis.so" | awk '/libhiredis/ { print $3 }' |
        while read -r path; do cp -L "$path" "$tree/lib/"; done
    patchelf --set-rpath "\$ORIGIN/../../lib" "$tree/libexec/kiln/libkiln-redis.so"
fi
strip "$tree"/bin/* "$tree"/libexec/kiln/* "$tree"/libexec/kiln/nvrtc/*/*.so.1? "$tree"/lib/* 2>/dev/null || true
# The command finds its libraries by itself: what kiln exec starts must not get them too.
patchelf --set-rpath "\$ORIGIN/../lib" "$tree/bin/kiln"
for library in "$tree"/lib/*.so.*; do
    [ -L "$library" ] || patchelf --set-rpath "\$ORIGIN" "$library"
done
python3 tests/device/same_path.py --build-tracers "$tree/trace"
mkdir -p "$tree/programs/kiln"
ln -s ../../bin/kiln "$tree/programs/kiln/kiln" # where scripts/demo.py looks
pwd >"$tree/source"
du -sh "$tree"
