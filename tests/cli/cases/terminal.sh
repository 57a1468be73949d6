# shellcheck shell=sh
# What a driver, a compiler, a file or the environment says cannot command the terminal.
escape=$(printf '\033')
KILN_FAKE_DRIVER="${escape}[2J2.0" KILN_FAKE_DEVICE="Fake ${escape}]0;title" KILN_CC="${escape}[31mcc"
export KILN_FAKE_DRIVER KILN_FAKE_DEVICE KILN_CC
printf 'kernel f x:floats\nx = x 1 +\n' >f.fake
printf 'fail %s[31mred%sc\n' "$escape" "$(printf '\302\233')" >bad.fake
printf 'kernel f x:floats\nx = x 1 +\n' >"odd${escape}[5m.fake"
count() {
    "$KILN" "$@" >out 2>&1
    printf '%s: %s of ESC, %s of CSI, ' "$*" "$(grep -c "$escape" out)" "$(grep -c "$(printf '\302\233')" out)" |
        sed "s/$escape/E/g"
    [ "$(wc -l <out)" -gt 1 ] && echo "some lines"
}
count doctor -b fake
count devices -b fake
unset KILN_CC
count compile bad.fake --target fake:0
count compile "odd${escape}[5m.fake" --target fake:0
count run f.fake -b fake -g 16 --arg inout:f32:16=fill:1
count explain f.fake --target fake:0
KILN_FAKE_DRIVER=3.0 count explain f.fake --target fake:0
count ls
"$KILN" ls --json | grep '"key"' | sed 's/.*: "//; s/".*//' | while read -r key; do count show "$key"; done
count stats
grep -c '\[2J' out
count doctor -b fake
grep 'library:' out
