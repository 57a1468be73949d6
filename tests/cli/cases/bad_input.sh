# shellcheck shell=sh disable=SC2086
# Issue 2's list: one clear line each, the documented exit code, and nothing in the cache.
cat >bad.fake <<'END'
kernel k x:floats
fail expected ';' before '}'
END
cat >good.fake <<'END'
kernel k x:floats
x = x 1 +
END
args="--backend fake --global 4 --arg inout:f32:4"
t run missing.fake $args
t run . $args
t run good.txt --global 1
t run bad.fake $args
t ls
t run good.fake --backend nothing --global 4
t run good.fake --backend fake --device nothing --global 4
t run good.fake --backend fake --device fake:7 --global 4
t run good.fake --language klingon --global 4
for setting in KILN_CACHE_MAX_SIZE=lots KILN_NO_CACHE=maybe KILN_RECACHE=2 KILN_READONLY=x \
    KILN_STRICT=perhaps KILN_FSYNC=x; do
    echo "-- $setting"
    export "${setting?}"
    t run good.fake $args
    unset "${setting%%=*}"
done
KILN_BACKEND=nothing
export KILN_BACKEND
t run good.fake --global 4 --strict --arg inout:f32:4
unset KILN_BACKEND
t compile good.fake bad.fake missing.fake --backend fake
