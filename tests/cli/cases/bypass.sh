# shellcheck shell=sh
# A compile that bypasses the cache: its time in the table, its reason in stats and doctor, in the
# metrics and in the trace.
printf 'kernel f x:floats\nx = x 1 +\n' >f.fake
t compile f.fake --target fake:0 -X -file=other
t run f.fake -b fake -g 16 --arg inout:f32:16=fill:1 -X -file=other
"$KILN" stats | head -5
# Not zero: what a compile that bypasses the cache took is its time in every table.
"$KILN" compile f.fake --target fake:0 -X -file=other --json 2>/dev/null | grep -c '"compile_ms": 0.0,'
"$KILN" run f.fake -b fake -g 16 --arg inout:f32:16=fill:1 -X -file=other --json 2>/dev/null | grep -c '"compile_ms": 0.0,'
"$KILN" stats --json | grep -E '"(bypassed|reason|last|compiles)"'
"$KILN" stats --openmetrics | grep -E '^kiln_cache_bypass' | sed 's/ [0-9.]*$/ N/'
"$KILN" doctor -b fake | grep bypassed
"$KILN" doctor -b fake --json | grep '"bypass'
KILN_TRACE=$PWD/trace.json "$KILN" run f.fake -b fake -g 16 --arg inout:f32:16=fill:1 -X -file=other >/dev/null 2>&1
grep -o '"name":"bypass".*names a file' trace.json | sed 's/"ts".*"args"/"args"/'
# A hit's compile time is nothing, here and there; what it saved is next to it.
"$KILN" compile f.fake --target fake:0 >/dev/null
"$KILN" compile f.fake --target fake:0 --json | grep -E '"(origin|compile_ms)"' | grep -c 'memory\|disk\|: 0.0,'
"$KILN" compile f.fake --target fake:0 --json | grep '"saved_ms"' | grep -c ': 0.0,'
"$KILN" stats | head -4
