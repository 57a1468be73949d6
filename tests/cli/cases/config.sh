# shellcheck shell=sh disable=SC2086,SC2016,SC2069
# Settings of the user's file: the environment wins, what is not understood is reported, and strangers' files are refused.
umask 022
conf=$HOME/.config/kiln/kiln.conf
mkdir -p "$(dirname "$conf")"
unset KILN_CACHE_DIR
t config
cat >"$conf" <<END
# a comment
cache_dir = $HOME/elsewhere
 remote=redis://:hunter2@127.0.0.1:1?read-only
cache_max_size	=	5G
END
t config
t stats
KILN_CACHE_MAX_SIZE=1G KILN_REMOTE='' t config
t config cache_dir KILN_TRUST
t config --json cache_dir
t config no_such_thing
"$KILN" config --all | wc -l
# The value of a file is named by its line.
echo 'cache_max_size = much' >"$conf"
t stats
KILN_CACHE_MAX_SIZE=1G t stats
# A line that is not understood is left out, and the rest counts.
printf 'cache_max_sise = 1G\nreadonly = 1\n' >"$conf"
t config
for line in 'nonsense' 'lock trust = any' 'lock cache_dir = /x' 'trace = /x' "trust = $(printf 'a\001b')"; do
    printf '%s\n' "$line" >"$conf"
    "$KILN" config 2>&1 >/dev/null | head -1
done
printf 'trust = a\0b\n' >"$conf"
"$KILN" config 2>&1 >/dev/null
echo 'readonly = 1' >"$conf"
chmod 664 "$conf"
t config readonly
t doctor -b fake
chmod 644 "$conf"
KILN_CONFIG="$HOME/other.conf" t config
KILN_CONFIG='' t config
XDG_CONFIG_HOME="$HOME/xdg" t config
# Neither a directory nor what never ends is read.
rm "$conf"
mkdir "$conf"
t config readonly
rmdir "$conf"
mkfifo "$conf"
t config readonly
# Two files are looked for, once in a process, and none by a program under kiln exec that compiles nothing.
rm "$conf"
if strace -o trace true 2>/dev/null; then
    strace -f -e trace=openat -o trace "$KILN" stats >/dev/null 2>&1
    [ "$(grep -c 'kiln\.conf' trace)" = 2 ] || grep 'kiln\.conf' trace
    strace -f -o trace "$KILN" exec -- sh -c : 2>/dev/null
    grep 'kiln\.conf' trace
fi
echo "looked for once"
# What /etc locks, neither the environment nor the user's file changes; what it only sets, both do.
mkdir etc
cp -a /etc/ld.so.c* etc 2>/dev/null
printf 'lock trust = signed\nreadonly = 1\n' >etc/kiln.conf
printf 'trust = any\n' >"$conf"
under() {
    unshare -m sh -c 'mount --bind "$1" /etc && shift && exec "$@"' - "$PWD/etc" "$@" 2>&1
}
expect() {
    grep -Eq "$1" out || { echo "expected $1"; cat out; }
}
if [ "$(id -u)" = 0 ] && under true >/dev/null; then
    KILN_TRUST=any under "$KILN" config trust readonly >out
    expect 'KILN_TRUST +signed +/etc/kiln.conf:1, locked'
    expect 'KILN_READONLY +1 +/etc/kiln.conf:2'
    KILN_READONLY=0 under "$KILN" config readonly >out
    expect 'KILN_READONLY +0 +environment'
    KILN_REMOTE=redis://127.0.0.1:1 KILN_TRUST=local under "$KILN" remote check >out
    expect 'takes +nothing: signed entries alone'
    chmod 666 etc/kiln.conf
    KILN_TRUST=any under "$KILN" config trust >out
    expect 'KILN_TRUST +any +environment'
    expect 'kiln.conf: it is not used'
fi
echo "locked"
