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
