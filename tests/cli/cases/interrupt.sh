# shellcheck shell=sh
# Ctrl-C ends the command by its signal, and with it the compiler that it or its worker runs.
need cpu
cat >k.c <<'CODE'
#include <kiln_kernel.h>

KILN_KERNEL(one, KILN_OUT(float, y))
{
    KILN_ITEMS_X(i)
    {
        y[i] = 1.0f;
    }
}
CODE
cat >slow-cc <<'CODE'
#!/bin/sh
case " $* " in
*" -shared "*) echo $$ $PPID >"$STARTED.new" && mv "$STARTED.new" "$STARTED" && exec sleep 1000 ;;
esac
exec cc "$@"
CODE
chmod 755 slow-cc
KILN_CC=$PWD/slow-cc
export KILN_CC STARTED="$PWD/started"
# Waits until a command succeeds; a minute is a hang.
until_it() {
    turns=0
    until "$@"; do
        turns=$((turns + 1))
        [ $turns -lt 600 ] || { echo "hangs: $*" && return 1; }
        sleep 0.1
    done
}
gone() { ! kill -0 "$1" 2>/dev/null || grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null; }
interrupt() { # SIGNAL COMMAND...
    signal=$1
    shift
    rm -f started
    # A background job of sh ignores SIGINT; python does not hand that on.
    python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$KILN" "$@" >out 2>err </dev/null &
    job=$!
    until_it test -e started
    read -r compiler parent <started
    kill -s "$signal" $job
    wait $job 2>/dev/null
    echo "$signal: $(($? - 128))"
    until_it gone "$compiler" && until_it gone "$parent" && echo "the compiler ended, too"
    # A compiler that was ended so is no failure to tell. That a script bypasses the cache is told when it has taken long.
    grep -v "bypasses the cache" err
}
for signal in INT TERM HUP; do
    interrupt $signal compile k.c -b cpu
done
printf '{"kiln_manifest": 1, "kernels": [{"name": "one", "sources": {"c": "k.c"}, "entry": "one", "args": [{"name": "y", "kind": "out", "type": "f32", "shape": [16]}], "launch": {"global": [16]}}]}\n' >k.json
echo "$ kiln warm k.json"
interrupt TERM warm k.json --target cpu:0
"$TAPE" recording walk cpu:0 1 k.c
for signal in INT TERM HUP; do
    echo "$ kiln warm recording"
    interrupt $signal warm recording
done
# What is ignored stays so.
rm -f started
(
    trap '' HUP
    exec "$KILN" compile k.c -b cpu >out 2>err </dev/null
) &
job=$!
until_it test -e started
kill -s HUP $job
kill -s TERM $job
wait $job 2>/dev/null
echo "ignored: $(($? - 128))"
# Nothing is stuck: the next one compiles the same.
unset KILN_CC
"$KILN" compile k.c -b cpu | awk 'NR == 2 { print $1, $2 }'
