#!/bin/sh
# replay_workers.sh KILN FAKECUDA TAPE: `kiln warm RECORDING` keeps few workers that have nothing to do, however many
# targets a recording has. Each worker writes down when it begins and when it has ended.
set -eu
kiln=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for variable in $(env | sed -n 's/^\(KILN_[A-Z_]*\)=.*/\1/p'); do
    [ "$variable" = KILN_LIBEXEC ] || unset "$variable"
done
real=${KILN_LIBEXEC:-$(cd "$(dirname "$kiln")/../libexec/kiln" && pwd)}
mkdir "$dir/libexec"
ln -s "$real"/* "$dir/libexec"
rm "$dir/libexec/kiln-replay"
cat >"$dir/libexec/kiln-replay" <<CODE
#!/bin/sh
echo +1 >>"$dir/workers"
code=0
"$real/kiln-replay" "\$@" || code=\$?
echo -1 >>"$dir/workers"
exit \$code
CODE
chmod 755 "$dir/libexec/kiln-replay"
cd "$dir"
export HOME="$dir" TMPDIR="$dir" CUDA_PATH="$2/toolkit" KILN_CACHE_DIR="$dir/cache" KILN_LIBEXEC="$dir/libexec"
for arch in 50 52 53 60 61 62 70 72 75 80 86 87 89 90; do
    printf '__global__ void one(float *x)\n{\n    x[0] = %s.0f;\n}\n' $arch >$arch.cu
    "$3" recording walk cuda:sm_$arch 1 $arch.cu
done
"$kiln" warm recording -j1 >out 2>&1 || { cat out; exit 1; }
awk '{ alive += $1; most = alive > most ? alive : most } END { print NR, most, alive }' workers >counts
read -r lines most left <counts
[ "$lines" -ge 28 ] || { echo "$lines lines: no worker for each target"; cat out; exit 1; }
[ "$most" -le 9 ] || { echo "$most workers at once, for one job"; exit 1; }
[ "$left" -eq 0 ] || { echo "$left workers are left"; exit 1; }
echo "ok: at most $most workers at once"
