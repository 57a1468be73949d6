# shellcheck shell=sh disable=SC2086
mkdir include out
printf '\n' >include/h.fake
for name in one two; do
    printf '#include "h.fake"\nkernel %s x:floats\nx = x N +\n' $name >$name.fake
done
t compile one.fake two.fake -b fake -I include -DN=1
t compile one.fake two.fake -b fake -I include -DN=1
t compile one.fake two.fake -b fake -I include -DN=2
touch include/h.fake
t compile one.fake two.fake -t fake:0 -I include -D N=1 --json
printf '\n\n' >include/h.fake
t compile one.fake -b fake -I include -DN=1 -o one.bin
t compile one.fake two.fake -b fake -I include -DN=1 -o out
ls one.bin out
cmp one.bin out/one.fake.bin && echo same
t compile one.fake two.fake -b fake -I include -DN=1 -o nowhere
t compile one.fake two.fake -b fake -I include -DN=1 -o one.bin
t compile one.fake two.fake -b fake -DN=1
t compile one.fake -t fake:0 -d fake:1
t compile one.fake -t nothing:0
t compile one.fake -t fake:nothing
t compile
t compile one.fake -b fake -I include -DN=1 -o /nowhere/x
# K6: a compiler that crashes on files takes none of the others along, one after another or at once.
mkdir crash
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
# One name in two directories is one name in the third.
mkdir more
cp one.fake include/h.fake more
t compile one.fake more/one.fake -b fake -I include -DN=1 -o out
t compile one.fake one.fake -b fake -I include -DN=1 -o out -j1
t compile one.fake -b fake -d fake:0 -a fake-0 -I include
# A kernel that is not in the text is named at once, not when it is run: after a compile, after a hit.
t compile one.fake -b fake -I include -DN=7 -e nope
t compile one.fake -b fake -I include -DN=7 -e nope
t compile one.fake -b fake -I include -DN=7 -e one
