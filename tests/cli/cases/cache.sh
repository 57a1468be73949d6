# shellcheck shell=sh disable=SC2086
cat >saxpy.fake <<'END'
kernel saxpy a:float x:floats y:floats
y = a x * y +
END
run="run saxpy.fake --backend fake --global 16 --arg value:f32=2.5 --arg in:f32:16 --arg inout:f32:16"
t ls
t stats
t $run
t $run
"$KILN" ls | sort
t ls --target portable
t ls --target portable --full
t ls --target fake-0 --json
"$KILN" ls --limit 1 | wc -l
t stats
t stats --json
# Notes are hidden, names are files and kernels, and a table fits where it is printed.
printf '#include "saxpy.h"\nkernel saxpy a:float x:floats y:floats\ny = a x * y +\n' >"saxpy.dir.fake"
: >saxpy.h
"$KILN" compile saxpy.dir.fake -t fake:0 -DN=2 --cache-dir noted >/dev/null
t ls --cache-dir noted
"$KILN" ls --cache-dir noted --all | sort
"$KILN" ls --cache-dir noted --json | sed -n '/"name"/p; /"note"/p' | sort | uniq -c
for columns in 80 60; do COLUMNS=$columns "$KILN" ls --cache-dir noted | awk '{ if (length($0) > '$columns') print "too wide: " $0 }'; done
COLUMNS=60 "$KILN" ls --cache-dir noted --target portable
COLUMNS=100 "$KILN" ls --cache-dir noted --target portable
"$KILN" --color=always ls --cache-dir noted | sed -n 1p | od -c | sed -n 1p
"$KILN" ls --cache-dir noted --color always | sed -n 1p | od -c | sed -n 1p
NO_COLOR=1 "$KILN" ls --cache-dir noted --color=auto | sed -n 1p
t ls --color=often
t verify
key=$("$KILN" ls --target portable --full | sed -n '2s/ .*//p')
printf '$ kiln show PREFIX -o payload.bin\n'
"$KILN" show "$(printf %.8s "$key")" -o payload.bin | sed -E 's/^(input|source|recipe) .*//' | head -9
[ -s payload.bin ] && echo "payload written"
"$KILN" show "$key" --json | sed 's/"recipe".*/"recipe"/'
t show 0
t show xyz1
t show 0000
# A damaged entry is found, is removed, and is compiled again.
file=$(find "$KILN_CACHE_DIR/v1/portable" -name '*.kiln')
printf 'X' | dd of="$file" bs=1 seek=100 conv=notrunc 2>/dev/null
t verify
t verify --json
KILN_LOG=loud t ls
t push redis://host
t compile saxpy.fake -t fake:0 -o /no/such/directory/x
t show "$key"
t verify --remove
t verify
t $run
t prune --target fake-0
t prune --max-age 1d --max-size 1G
t ls
t prune --max-size 0 --json
t $run
t clear
t ls
t clear --json
# What prune would remove, where the cache is, and counters since then.
t $run
t prune --max-size 0 --dry-run
t prune --max-age 1d --dry-run --json
KILN_READONLY=1 t prune --target fake-0 --dry-run
t prune --dry-run
t cache dir
t cache size
t cache size --json
t cache place
"$KILN" stats --json >then.json
t $run
t stats --since then.json
t stats --since saxpy.fake
# The two compiles take about as long, so either may be first.
"$KILN" stats --programs | sed -n '/^program /,$p' | sort
"$KILN" stats --programs --json | sed -n '/"programs"/,$p' | sort
"$KILN" stats --zero >/dev/null
t stats
t $run
t stats --since then.json
"$KILN" stats --json | grep '"hits_disk"\|"misses"'
KILN_READONLY=1 t stats --zero
t clear
# Without a disk tier the command that looks into it says so; the one that runs goes on.
KILN_NO_CACHE=1
export KILN_NO_CACHE
t ls
t $run
unset KILN_NO_CACHE
t stats --cache-dir /dev/null/nowhere
t $run --cache-dir /dev/null/nowhere
t $run --cache-dir other
t ls --cache-dir other
# Output that is not written is not a success.
key=$("$KILN" ls --cache-dir other --target fake-0 --full | sed -n '2s/ .*//p')
KILN_RECACHE=1
export KILN_RECACHE
"$KILN" show "$key" --cache-dir other -o payload >/dev/null
echo "[$?]"
unset KILN_RECACHE
"$KILN" show "$key" --cache-dir other -o payload >/dev/null && [ -s payload ] && echo there
