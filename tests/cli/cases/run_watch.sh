# shellcheck shell=sh
# kiln run --watch: an edited header gives the new result; what does not compile is reported once, with
# its log, and the next good text runs again. The command runs in parallel with this script and is killed by its id.
result() { tail -c 4 y.bin 2>/dev/null | od -An -tf4 | tr -d ' '; }
wait_for() { # COMMAND…: until it is true, 20 seconds at most
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ "$tries" -lt 200 ] || { echo "in vain: $*"; break; }
        sleep 0.1
    done
}
is_result() { [ "$(result)" = "$1" ]; }
is_told() { grep -q "$1" err; }
put() { printf '#define VALUE %s\n' "$1" >new && mv new value.h; }
put 3
printf '#include "value.h"\nkernel f y:floats\ny = VALUE\n' >f.fake
"$KILN" run f.fake -b fake -g 1 --arg out:f32:1 -n 1 --save 0=y.bin --watch >out 2>err &
pid=$!
wait_for is_result 3
sleep 0.3 # it begins to look when the first run is told
put 4
wait_for is_result 4
put nonsense
wait_for is_told nonsense
result
put 5
wait_for is_result 5
kill "$pid"
wait "$pid" 2>/dev/null
echo "it ended with $?; tables: $(grep -c 'fake:0' out); errors: $(grep -c 'nonsense' err)"
cat err
