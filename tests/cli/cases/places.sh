# shellcheck shell=sh disable=SC2086
# Places where a cache should not be, or cannot: each is a line of output and a working program.
cat >saxpy.fake <<'CODE'
kernel saxpy a:float x:floats y:floats
y = a x * y +
CODE
run="run saxpy.fake --backend fake --global 16 --arg value:f32=2.5 --arg in:f32:16=fill:2 --arg inout:f32:16=fill:1"
"$KILN" $run --no-cache --save 2=right.bin >/dev/null
# The table, what is right, one line at most, and the exit code; then what looks into the cache.
at() {
    printf '== %s\n' "$1"
    t $run --cache-dir "$PWD/$1" --expect 2=right.bin
    t compile saxpy.fake --backend fake -DX=1 --cache-dir "$PWD/$1"
    t ls --cache-dir "$PWD/$1"
    t prune --max-size 1G --cache-dir "$PWD/$1"
    t verify --remove --cache-dir "$PWD/$1"
    t clear --cache-dir "$PWD/$1"
}
mkdir -m 777 open
chmod 777 open
mkdir real real/v1
chmod 755 real
ln -s real link
ln -s nowhere dangling
: >file
mkdir -p odd/v1/portable
chmod 700 odd
: >odd/v1/fake-0
for place in open link dangling file; do
    at $place
done
# Nothing was left in any of them.
find open real dangling file | sort
# A file where a directory of the cache should be costs the entries that would be there, no more.
printf '== odd\n'
t $run --cache-dir "$PWD/odd" --expect 2=right.bin
t $run --cache-dir "$PWD/odd" --expect 2=right.bin
# A line of the path's is not one of the command's.
"$KILN" stats --cache-dir "$PWD/two
entries   7"
# What is counted is what the files take on the disk.
t $run --cache-dir "$PWD/good"
find good/v1 -name '*.kiln' -printf '%s\n' |
    awk '{ sum += int(($1 + 4095) / 4096) * 4096 } END { print "\"bytes\": " sum "," }' >expected
"$KILN" stats --json --cache-dir "$PWD/good" | grep -o '"bytes": .*' | diff expected - && echo "as on the disk"

# What a killed writer left is shown and removed; a file in the way is named.
rm -rf "$KILN_CACHE_DIR"
mkdir -p "$KILN_CACHE_DIR/tmp"
chmod 700 "$KILN_CACHE_DIR"
head -c 5000 /dev/zero >"$KILN_CACHE_DIR/tmp/1-2-0123456789abcdef"
"$KILN" stats | grep temporary
"$KILN" doctor 2>/dev/null | grep temporary
t prune --max-age 1d
rmdir "$KILN_CACHE_DIR/tmp"
touch "$KILN_CACHE_DIR/tmp"
"$KILN" doctor 2>/dev/null | grep -A 1 blocked
rm -rf "$KILN_CACHE_DIR"
