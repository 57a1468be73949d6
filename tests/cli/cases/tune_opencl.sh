# shellcheck shell=sh
# Real variants on an OpenCL device: the sums of a group come out in another order, within tolerance.
need opencl
manifest="$SOURCE_DIR/kernels/manifest.json"
for kernel in saxpy rms_norm; do
    "$KILN" tune "$manifest" -b opencl -d opencl:0 --kernel $kernel --budget 100ms --json >first.json ||
        echo "failed: $?"
    grep -E '"(from|baseline)"' first.json
    grep -c '"outcome": "chosen"' first.json
    grep -c '"outcome": "differs"' first.json
    "$KILN" tune "$manifest" -b opencl -d opencl:0 --kernel $kernel --json | grep -E '"(from|launches)"' | uniq
    chosen=$(sed -n 's/^      "variant": "\(.*\)",/\1/p' first.json)
    "$KILN" run "$manifest" -b opencl -d opencl:0 --kernel $kernel --json >run.json || echo "failed: $?"
    grep -E '"(compiles|checked|ok)"' run.json | head -3
    grep -c "\"variant\": \"$chosen\"" run.json
done
