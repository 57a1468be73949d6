#!/bin/sh
# wrong.sh KILN TABLE: types what a newcomer gets wrong, one command a row of TABLE, and checks the
# exit code and that standard error says what to type instead. A row:
#
#     BACKEND | EXIT | TEXT that standard error contains | ARGUMENTS of kiln, as in a shell
#
# A row is left out where its BACKEND has no device; "-" needs none. A ¦ in TEXT stands for |.
set -u
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
table=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
for variable in $(env | sed -n 's/^\(KILN_[A-Z_]*\)=.*/\1/p'); do
    [ "$variable" = KILN_LIBEXEC ] || unset "$variable"
done
mkdir "$folder/work" "$folder/home"
export HOME="$folder/home" XDG_CACHE_HOME="$folder/home/.cache" KILN_CACHE_DIR="$folder/cache"
export TERM=dumb LC_ALL=C
cd "$folder/work" || exit 1

cat >vadd.cl <<'END'
__kernel void vadd(__global const float *a, __global const float *b, __global float *c, int n)
{
    int i = get_global_id(0);
    if (i < n) c[i] = a[i] + b[i];
}
END
cat >two.fake <<'END'
kernel one x:floats
x = x 1 +
kernel two x:floats
x = x 2 +
END
cat >good.fake <<'END'
kernel k x:floats n:int
x = x 1 +
END
cat >m.json <<'END'
{"kiln_manifest": 1, "kernels": [
  {"name": "one", "sources": {"fake": "two.fake"}, "args": [], "launch": {"global": [4]}},
  {"name": "two", "sources": {"fake": "two.fake"}, "args": [], "launch": {"global": [4]}}]}
END
sed 's/"fake": "two/"opencl": "two/' m.json >language.json
sed 's/, "launch": {"global": \[4\]}//' m.json >launch.json
sed 's/"args": \[\], //' m.json >args.json
printf '{"kernels": []}\n' >other.json
printf '{"kiln_manifest": 1,, }\n' >broken.json
printf '#version 450\nvoid main() { gl_Position = vec4(0); }\n' >v.vert
printf "#version 450\nlayout(local_size_x = 1) in;\nvoid main() {}\n" >c.comp
: >empty.fake
: >empty.json
mkdir folder

# Whether a backend has a device; asked once.
has()
{
    if [ ! -f "$folder/has_$1" ]; then
        if "$program" devices --backend "$1" >/dev/null 2>&1; then
            echo yes >"$folder/has_$1"
        else
            echo no >"$folder/has_$1"
        fi
    fi
    [ "$(cat "$folder/has_$1")" = yes ]
}

rows=0
failed=0
while IFS='|' read -r needs code text command; do
    case $needs in '#'* | '') continue ;; esac
    needs=$(echo "$needs" | tr -d ' ')
    if [ "$needs" != - ] && ! has "$needs"; then
        continue
    fi
    code=$(echo "$code" | tr -d ' ')
    text=$(echo "$text" | sed 's/^ *//; s/ *$//; s/¦/|/g')
    got=0
    eval "\"\$program\" $command" >"$folder/out" 2>"$folder/err" </dev/null || got=$?
    rows=$((rows + 1))
    if [ "$got" != "$code" ] || ! grep -qF -e "$text" "$folder/err"; then
        failed=$((failed + 1))
        echo "kiln$command"
        echo "  exit $got, expected $code; expected on standard error: $text"
        sed 's/^/  ! /' "$folder/err"
    fi
done <"$table"
echo "$rows commands, $failed with another answer"
[ "$failed" = 0 ] && [ "$rows" -gt 40 ]
