#!/bin/sh
# nightly.sh SOURCE: ./dev nightly, with a stand-in for what it starts.
set -eu
source_dir=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/tree/scripts"
cp "$source_dir/scripts/nightly.sh" "$folder/tree/scripts/"
cat >"$folder/dev" <<'END'
#!/bin/sh
echo "$*" >>"$(dirname "$0")/started"
case $* in
"test musl") echo "skipped: musl: no musl-gcc" ;;
"test arm64") echo "skipped: arm64: no sysroot: E: unable to fetch" ;;
"test s390x") echo "skipped: some_test: SKIP no device" ;;
"package deb") echo "dev: missing packages: debhelper" && exit 2 ;;
"package wheel") echo "the compiler's words" && exit 1 ;;
esac
END
chmod +x "$folder/dev"
expect() {
    diff "$folder/expected" "$folder/printed" || { echo "nightly $* printed something else"; exit 1; }
}
run() {
    rc=0
    "$folder/tree/scripts/nightly.sh" "$folder/dev" "$@" >"$folder/all" 2>&1 || rc=$?
    sed -E 's/ \([0-9]+ s\)//' "$folder/all" >"$folder/printed"
}

cat >"$folder/expected" <<'END'
skipped deb: missing packages: debhelper
failed  wheel: the compiler's words (status 1, see build/nightly/wheel.log)
failed  arm64: no sysroot: E: unable to fetch
ok      s390x
skipped musl: no musl-gcc
nightly: 1 ok, 2 failed, 2 skipped; failed: wheel arm64
END
run deb wheel arm64 s390x musl
expect deb wheel arm64 s390x musl
[ "$rc" = 1 ]
printf 'ok      s390x\nskipped musl: no musl-gcc\nnightly: 1 ok, 0 failed, 1 skipped\n' >"$folder/expected"
run s390x musl
expect s390x musl
[ "$rc" = 0 ]
run s390x no-such-part
[ "$rc" = 2 ] && grep -q "no such part: no-such-part (give fuzz" "$folder/printed"

# All of them: but for those that are by name.
rm "$folder/started"
run
[ "$(wc -l <"$folder/started")" = 12 ] || { cat "$folder/started"; exit 1; }
grep -e loaded -e repro "$folder/started" && exit 1
echo "nightly: fine"
