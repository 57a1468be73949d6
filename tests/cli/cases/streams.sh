# shellcheck shell=sh disable=SC2086
# Started without standard streams: no file or pipe of the command's takes their places, and what
# cannot be printed is not a success.
printf 'kernel f x:floats\nx = x 1 +\n' >f.fake
"$KILN" compile f.fake -b fake <&- >&-
echo "[$?]"
"$KILN" compile f.fake -b fake <&- >&- 2>&-
echo "[$?]"
"$KILN" compile absent.fake -b fake <&- >out 2>&-
echo "[$?]"
cat out
"$KILN" compile f.fake -b fake <&-
echo "[$?]"
t verify
# A reader that goes away is not a finding.
"$KILN" help | head -1
# JSON that does not fit into a buffer, on a full disk: one line that is true.
if [ -w /dev/full ]; then
    for n in 1 2 3 4 5 6 7 8 9; do
        printf 'kernel f x:floats\nx = x %s +\n' $n >f$n.fake
    done
    "$KILN" compile f?.fake -b fake --json >/dev/full
    echo "[$?]"
else
    echo 'kiln: cannot write to standard output'
    echo '[6]'
fi
# A variable that is empty counts as unset; an option does not.
KILN_LOG='' KILN_CACHE_DIR=/dev/null/nowhere t compile f.fake -b fake
t stats --cache-dir ''
t stats --cache-dir=
ls
