# shellcheck shell=sh disable=SC2086,SC2016
# Programs under kiln exec: their exit codes, their streams, their environment, the report.
t exec
t exec -- sh -c 'exit 7'
t exec -- sh -c 'kill -TERM $$'
t exec --stats -- sh -c 'kill -TERM $$'
t exec -- no-such-program
t exec -- /dev/null
echo given | "$KILN" exec -- cat
"$KILN" exec -- sh -c 'echo out; echo err >&2' 2>err.txt
cat err.txt
t exec --stats -- sh -c 'echo out'
"$KILN" exec --report report.json -- true
cat report.json
t exec --report /no/such/place/report.json -- true
# K9: where no temporary file can be made the report is in memory.
TMPDIR=/no/such/place "$KILN" exec --stats -- sh -c 'printf "nvrtc\tdisk\t1000\t5001000\tk.cu\t\n" >>"$KILN_EXEC_REPORT"; exit 3' 2>&1
echo "[$?]"
# What other processes write is not trusted to be whole.
"$KILN" exec --stats -- sh -c 'printf "nvrtc\tdisk\t1000\t5001000\tk.cu\t\nnvrtc\tdisk\tx" >>"$KILN_EXEC_REPORT"' 2>&1
# Why it can do nothing, by what the libraries wrote or by what this process finds.
"$KILN" exec --stats -- sh -c 'printf "core\toff\t0\t0\t/k/core.so\tlibx.so: not there\ncore\toff\t0\t0\t/k/core.so\tagain\n" >>"$KILN_EXEC_REPORT"' 2>&1
"$KILN" exec --stats -- sh -c 'printf "cache\tread-only\t0\t0\t/c\ta reason\nnvrtc\tdisk\t1000\t5001000\tk.cu\t\n" >>"$KILN_EXEC_REPORT"' 2>&1
"$KILN" exec --stats -- sh -c 'printf "cache\tread-only\t0\t0\t/c\ta reason\nnvrtc\tcompiled\t1000\t0\tk.cu\t\n" >>"$KILN_EXEC_REPORT"' 2>&1
KILN_DISABLE=1 t exec --stats -- true
KILN_NO_CACHE=1 t exec --stats -- true
KILN_READONLY=1 t exec --stats -- true
KILN_CACHE_DIR=/proc/nowhere t exec --stats -- true
KILN_DISABLE=1 "$KILN" doctor --backend fake | sed -n '/kiln exec/,/fix/p'
KILN_NO_CACHE=1 "$KILN" exec --report report.json -- true
sed -n '/troubles/,$p' report.json
"$KILN" exec --stats -- sh -c 'printf "nvrtc\tbypassed\t7000000\t0\tk.cu\ta reason\nnonsense\n" >>"$KILN_EXEC_REPORT"' 2>&1
# The last line: what was found, or the one reason why not.
rows='nvrtc\tdisk\t1000\t5001000\ta.cu\t\nnvrtc\tmemory\t1000\t3001000\tb.cu\t\n'
for more in '' 'nvrtc\tcompiled\t2000000\t0\tc.cu\t\n' 'nvrtc\tfailed\t1000\t0\tc.cu\t\n' \
    'nvrtc\tbypassed\t7000000\t0\tk.cu\ta reason\nnvrtc\tcompiled\t2000000\t0\tc.cu\t\n' \
    'cache\tread-only\t0\t0\t/c\ta reason\nnvrtc\tcompiled\t2000000\t0\tc.cu\t\n'; do
    ROWS="$rows$more" "$KILN" exec --stats -- sh -c 'printf "$ROWS" >>"$KILN_EXEC_REPORT"' 2>&1 | tail -n 1
done
for name in '' pyopencl; do
    NAME=$name "$KILN" exec --stats --report report.json -- sh -c 'printf "binary\tloaded\t0\t0\t$NAME\t\n" >>"$KILN_EXEC_REPORT"' 2>&1 | tail -n 1
    sed -n '/verdict/p; /unread/p' report.json
done
# The switch of Python's adapters, and the word for a Python that compiles all it imports at every start.
"$KILN" exec -- sh -c 'echo "KILN_PYTHON=${KILN_PYTHON-unset}"'
KILN_PYTHON=0 "$KILN" exec -- sh -c 'echo "KILN_PYTHON=${KILN_PYTHON-unset}"'
"$KILN" exec --no-python -- sh -c 'echo "KILN_PYTHON=${KILN_PYTHON-unset}"'
PYTHONDONTWRITEBYTECODE=1 "$KILN" exec --stats -- true 2>&1
# And for one that cannot keep the bytecode of a package: here a file lies where the directory should be.
mkdir -p env/bin site/torch
printf '#!/bin/sh\nexit 0\n' >env/bin/python3
chmod +x env/bin/python3
printf '#!%s\n' "$PWD/env/bin/python3" >env/bin/torchrun
chmod +x env/bin/torchrun
: >site/torch/__init__.py
PYTHONDONTWRITEBYTECODE=1 "$KILN" exec --stats -- env/bin/python3 2>&1
: >site/torch/__pycache__
export PYTHONPATH="$PWD/site"
"$KILN" exec --stats -- env/bin/python3 2>&1
"$KILN" exec --stats -- env/bin/torchrun 2>&1
# A directory of that name is passed over, as by the system.
mkdir -p folders/torchrun
PATH="$PWD/folders:$PWD/env/bin:$PATH" "$KILN" exec --stats -- torchrun 2>&1
"$KILN" doctor -- env/bin/python3 2>&1 | sed -n '/^Python/,$p'
echo "-- elsewhere, written, and no Python"
PYTHONPYCACHEPREFIX=/tmp "$KILN" exec --stats -- env/bin/python3 2>&1
"$KILN" exec --stats -- true 2>&1
rm site/torch/__pycache__
"$KILN" exec --stats -- env/bin/python3 2>&1
mkdir site/torch/__pycache__
: >site/torch/__pycache__/__init__.cpython-311.pyc
"$KILN" doctor -- env/bin/python3 2>&1 | sed -n '/^Python/,$p'
unset PYTHONPATH
# The user's lists stay behind kiln's.
LD_LIBRARY_PATH=/mine "$KILN" exec -- sh -c 'case $LD_LIBRARY_PATH in */mine) echo kept ;; *) echo "lost: $LD_LIBRARY_PATH" ;; esac'
# A layer is in a list where an element is its name, and not where one begins with it; it is put there once.
own=$("$KILN" exec --print | sed -n "s/^export OPENCL_LAYERS='\(.*\)'$/\1/p")
layers="VK_INSTANCE_LAYERS=VK_LAYER_KILN_cache2 OPENCL_LAYERS=$own.bak"
for list in "$layers" "$layers:$own:/b.so" "VK_INSTANCE_LAYERS=a:VK_LAYER_KILN_cache OPENCL_LAYERS=$own"; do
    # shellcheck disable=SC2086,SC2016 # two settings
    env $list "$KILN" exec -- sh -c 'echo "$OPENCL_LAYERS $VK_INSTANCE_LAYERS"' | sed "s|$own|OWN|g"
done
KILN_LIBEXEC=/no/such/place "$KILN" exec --print >/dev/null
# What is for tests of kiln alone is examined when it is named.
"$KILN" doctor 2>/dev/null | sed -n '/^  fake/p; /^Cache/p'
# A wrong KILN_LOG keeps no program from running.
KILN_LOG=loud "$KILN" exec -- sh -c 'echo "the program has run"' 2>/dev/null
