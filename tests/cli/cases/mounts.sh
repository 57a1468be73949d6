# shellcheck shell=sh disable=SC2086
# A full file system, one without room for files, a read-only mount, a directory of another user: each
# is a line of output and a working program. In a mount namespace of its own, which needs root.
if [ "$(id -u)" != 0 ] || ! unshare -m mount -t tmpfs none "$HOME" 2>/dev/null; then
    case ",${KILN_REQUIRE:-}," in
    *,mounts,*) echo "REQUIRED mounts: no mount namespace can be made here" && exit 1 ;;
    esac
    echo "SKIP mounts: no mount namespace can be made here" >&3
    exit 77
fi
cat >saxpy.fake <<'CODE'
kernel saxpy a:float x:floats y:floats
y = a x * y +
CODE
run="run saxpy.fake --backend fake --global 16 --arg value:f32=2.5 --arg in:f32:16=fill:2 --arg inout:f32:16=fill:1"
"$KILN" $run --no-cache --save 2=right.bin >/dev/null
mkdir full inodes readonly stranger
chmod 700 stranger
chown 12345 stranger
cat >in_namespace.sh <<'CODE'
mount -t tmpfs -o size=256k,mode=700 none full
mount -t tmpfs -o nr_inodes=1,mode=700 none inodes
mount -t tmpfs -o size=1m,mode=700 none readonly
for place in full readonly; do
    "$KILN" $run --cache-dir "$PWD/$place" >/dev/null
done
cat /dev/zero >full/filler 2>/dev/null
mount -o remount,ro readonly
for place in full inodes readonly stranger; do
    printf '== %s\n' "$place"
    for command in "$run --expect 2=right.bin" "$run -DX=1 --expect 2=right.bin" \
        "compile saxpy.fake --backend fake -DX=2" ls "prune --max-size 1G" verify "verify --remove" clear; do
        printf '$ kiln %s\n' "$command"
        code=0
        "$KILN" $command --cache-dir "$PWD/$place" >out 2>err </dev/null || code=$?
        cat out
        sed 's/^/! /' err
        [ "$code" = 0 ] || echo "[$code]"
    done
done
CODE
export run
unshare -m sh in_namespace.sh
