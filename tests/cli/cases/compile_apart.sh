# shellcheck shell=sh disable=SC2086
# K6: a compiler that crashes on files takes none of the others along, one after another or at once.
mkdir crash out
for name in a crashes_the_compiler b c; do
    printf 'kernel %s x:floats\nx = x 1 +\n' $name >crash/$name.fake
done
printf '# another\nkernel crashes_the_compiler x:floats\nx = x 2 +\n' >crash/second.fake
(
    # shellcheck disable=SC3045
    ulimit -c 0
    crash="crash/a.fake crash/crashes_the_compiler.fake crash/b.fake crash/second.fake crash/c.fake"
    export KILN_CACHE_DIR="$PWD/crash-1"
    t compile $crash -b fake -j1
    export KILN_CACHE_DIR="$PWD/crash-2"
    "$KILN" compile $crash -b fake -j4 --json 2>/dev/null | grep -E '"(file|ok|reason)"'
    t compile $crash -b fake -o out
)
ls out/a.fake.bin out/b.fake.bin out/c.fake.bin
rm out/a.fake.bin out/b.fake.bin out/c.fake.bin
