# shellcheck shell=sh disable=SC2086
# A manifest made in four parts, each in a cache of its own; one part is killed midway and begun again;
# the merged pack spares another machine every compile.
mkdir app
list=
for i in 1 2 3 4 5 6 7 8 9 10 11; do
    printf 'kernel k%s x:floats\nx = x %s +\n' $i $i >app/k$i.fake
    list="$list${list:+, }{\"name\": \"k$i\", \"sources\": {\"fake\": \"k$i.fake\"}, \"entry\": \"k$i\", \"args\": [{\"name\": \"x\", \"kind\": \"inout\", \"type\": \"f32\", \"shape\": [16]}], \"launch\": {\"global\": [16]}}"
done
printf '{"kiln_manifest": 1, "kernels": [%s]}\n' "$list" >app/all.json
warm="$KILN warm app/all.json --target fake:0,fake:1 -j1"
for part in 1 2 4; do
    KILN_CACHE_DIR=$PWD/cache.$part $warm --shard $part/4 --pack part$part.kpack --json >part$part.json
done
# The third hangs in its third compile, and is killed.
KILN_CACHE_DIR=$PWD/cache.3 KILN_FAKE_FAULTS=compile=hang@3 $warm --shard 3/4 --pack part3.kpack >/dev/null 2>&1 &
pid=$!
while [ "$("$KILN" ls --json --cache-dir "$PWD/cache.3" 2>/dev/null | grep -c '"target": "fake')" -lt 2 ]; do
    sleep 0.05
done
kill -9 $pid
wait $pid 2>/dev/null
ls part3.kpack 2>/dev/null
KILN_CACHE_DIR=$PWD/cache.3 $warm --shard 3/4 --pack part3.kpack --json >part3.json
grep -h '"result"' part3.json | sort | uniq -c | sed 's/^ *//'
# Every kernel for every target is in one part, and in one alone.
cat part?.json | grep -E '"(kernel|target)": "' | paste - - | sort | uniq -c | awk '{ print $1 }' | sort | uniq -c | sed 's/^ *//'
t pack merge all.kpack part1.kpack part2.kpack part3.kpack part4.kpack
t pack merge again.kpack all.kpack part2.kpack --json
t pack verify again.kpack
t pack merge one.kpack all.kpack --target fake-1
t pack merge none.kpack all.kpack --target fake:7
cmp all.kpack again.kpack
mkdir elsewhere
(
    export HOME=$PWD/elsewhere KILN_CACHE_DIR=$PWD/elsewhere/cache KILN_PACKS=$PWD/all.kpack
    $warm --json | grep '"result"' | sort | uniq -c | sed 's/^ *//'
    "$KILN" stats --json | grep '"compiles"'
)
# What is whole of a damaged pack is merged, and exit code 5 tells.
size=$(wc -c <part2.kpack)
cp part2.kpack hurt.kpack
printf 'XXXXXXXX' | dd of=hurt.kpack bs=1 seek=$((size / 5)) conv=notrunc 2>/dev/null
"$KILN" pack merge whole.kpack part1.kpack hurt.kpack >out 2>err || echo "[$?]"
sed 's/[0-9]* damaged entr[a-z]* [a-z]* left out/N damaged left out/' err
"$KILN" pack verify whole.kpack | sed 's/^[0-9]*/N/; s/, .*//'
head -c 40 part2.kpack >cut.kpack
t pack merge whole.kpack part1.kpack cut.kpack
t pack merge none.kpack
t pack merge none.kpack part1.kpack absent.kpack
t pack merge none.kpack part1.kpack --level 99
ls none.kpack 2>/dev/null
for shard in 0/4 5/4 1/0 x/4 1/ /4 3 1/4/2 -1/4; do
    t warm app/all.json --target fake:0 --shard=$shard
done
t warm app/all.json --target fake:0 --shard 1/1 --max 1
# More parts than kernels: some have nothing to do.
"$KILN" warm app/all.json --target fake:0 --shard 40/40 --pack empty.kpack
t pack list empty.kpack
