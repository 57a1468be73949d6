# shellcheck shell=sh disable=SC2086
# A pack made in one cache hits in another home, with another cache, and is never written to.
cat >saxpy.fake <<'END'
kernel saxpy a:float x:floats y:floats
y = a x * y +
END
run="run saxpy.fake --backend fake --global 16 --arg value:f32=2.5 --arg in:f32:16 --arg inout:f32:16"
t pack create empty.kpack
t pack list empty.kpack
t pack verify empty.kpack
t $run
t pack create a.kpack
t pack create a.kpack --raw --json
t pack list a.kpack
"$KILN" pack list a.kpack --json | sed -n 's/^ *"\(pack\|count\|target\)": /\1 /p'
t pack verify a.kpack
t pack verify a.kpack --json
key=$("$KILN" pack list a.kpack --full | sed -n 's/^\([0-9a-f]\{64\}\) .*/\1/p' | head -1)
t pack create one.kpack "$(printf %.12s "$key")"
t pack add one.kpack
t pack add one.kpack --target portable
t pack list a.kpack --target portble
t pack list a.kpack --target fake:0
t pack extract a.kpack --target fake:0
t pack extract empty.kpack --target fake:0
t pack create none.kpack --target fake:0
[ ! -e none.kpack ] || echo "a pack was made all the same"
# Elsewhere: another home, another cache.
mkdir elsewhere
(
    # shellcheck disable=SC2030
    export HOME=$PWD/elsewhere KILN_CACHE_DIR=$PWD/elsewhere/cache KILN_PACKS=$PWD/a.kpack
    before=$(cksum <a.kpack)
    "$KILN" $run --json | grep -E '"(origin|compiles)"'
    "$KILN" stats --json | grep -E '"(hits_pack|misses|compiles|entries)"'
    [ "$before" = "$(cksum <a.kpack)" ] || echo "the pack was changed"
    unset KILN_PACKS
    "$KILN" pack extract a.kpack
    "$KILN" pack extract a.kpack --json
    "$KILN" $run --json | grep -E '"(origin|compiles)"'
)
# As another user of another host, where this test may become one: the line is the same without.
chmod 711 "$(dirname "$PWD")" "$PWD"
mkdir other
chmod 777 other
elsewhere="setpriv --reuid=65534 --regid=65534 --clear-groups unshare --map-root-user --uts"
# shellcheck disable=SC2030,SC2031
export KILN_PACKS=$PWD/a.kpack
if [ "$(id -u)" = 0 ] && $elsewhere "$KILN" version >/dev/null 2>&1; then
    HOME=$PWD/other KILN_CACHE_DIR=$PWD/other/cache $elsewhere sh -c 'hostname elsewhere; exec "$@"' sh \
        "$KILN" $run --json | grep '"origin"'
else
    printf '      "origin": "pack",\n'
fi
unset KILN_PACKS
# What cannot be used is one warning.
printf 'X' | dd of=one.kpack bs=1 seek=40 conv=notrunc 2>/dev/null
t pack verify one.kpack
head -c 1000 a.kpack >cut.kpack
t pack list cut.kpack
t pack list saxpy.fake
t pack list absent.kpack
# Only what it says on standard error.
# shellcheck disable=SC2069
KILN_PACKS=$PWD/cut.kpack:$PWD/absent.kpack KILN_CACHE_DIR=$PWD/third "$KILN" $run 2>&1 >/dev/null
t pack
t pack shrink a.kpack
t pack list a.kpack b.kpack
t pack create a.kpack --level 23
t pack create a.kpack 0000
t pack create a.kpack --level 0
# A cache that is only read takes nothing.
KILN_READONLY=1
export KILN_READONLY
t pack extract a.kpack
unset KILN_READONLY
echo "-- what is left out, and why"
printf '#define N 1\n' >h.fake
printf '#include "h.fake"\nkernel inc x:floats\nx = x 1 +\n' >inc.fake
KILN_CACHE_DIR=$PWD/notes
"$KILN" compile inc.fake -b fake >/dev/null
t pack create notes.kpack
t pack create notes.kpack --json
