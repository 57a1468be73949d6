# shellcheck shell=sh
# Real variants on the processor. Which one wins is its business; that it is kept, and right, is ours.
need cpu
manifest="$SOURCE_DIR/kernels/manifest.json"
"$KILN" tune "$manifest" -b cpu --kernel gemm --budget 200ms --json >first.json || echo "failed: $?"
grep -E '"(from|baseline|outcome)"' first.json | sed -E 's/"(behind|measured|chosen|failed)"/".../'
grep -c '"outcome": "chosen"' first.json
# The next processes measure nothing, and run what was chosen.
"$KILN" tune "$manifest" -b cpu --kernel gemm --json | grep -E '"(from|launches|samples)"' | sed 's/"samples": [1-9][0-9]*/"samples": some/' | uniq
chosen=$(sed -n 's/^      "variant": "\(.*\)",/\1/p' first.json)
"$KILN" run "$manifest" -b cpu --kernel gemm --json >run.json || echo "failed: $?"
grep -E '"(compiles|checked|ok)"' run.json | head -3
grep -c "\"variant\": \"$chosen\"" run.json
