#!/bin/sh
# release.sh SOURCE: ./dev release, with a stand-in for what makes the packages.
set -eu
source_dir=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
fail() { echo "$*"; exit 1; }
tree=$folder/tree
mkdir -p "$tree/scripts"
cp "$source_dir/scripts/release.sh" "$source_dir/scripts/source_tarball.sh" "$tree/scripts/"
echo 'project(kiln VERSION 1.2.3 LANGUAGES C)' >"$tree/CMakeLists.txt"
touch -d @1000000000 "$tree/CMakeLists.txt"
cat >"$tree/dev" <<'END'
#!/bin/sh
set -e
leave() { mkdir -p "build/$1" && echo "$2" >"build/$1/$2"; }
case $* in
"package deb") leave deb kiln_amd64.deb ;;
"package arm64") leave deb-arm64 kiln_arm64.deb ;;
"package wheel") leave wheel kiln_cache.whl ;;
"package wheel-arm64") echo "dev: cannot build for arm64: no sysroot" && exit 1 ;;
"package windows") echo "the linker's words" && exit 1 ;;
esac
END
chmod +x "$tree/dev"
mkdir -p "$tree/build/release-1.2.3"
touch "$tree/build/release-1.2.3/of-another-day.deb"
(cd "$tree" && scripts/release.sh ./dev) >"$folder/said" 2>&1 && fail "a part that failed is not an error"
for line in "ok      deb-arm64" "skipped wheel-arm64: cannot build for arm64: no sysroot" "failed  windows: the linker's words"; do
    grep -qF "$line" "$folder/said" || fail "no \"$line\": $(cat "$folder/said")"
done
cd "$tree/build/release-1.2.3"
sha256sum --quiet -c SHA256SUMS
[ "$(cut -d' ' -f3 SHA256SUMS | tr '\n' ' ')" = "kiln-1.2.3.tar.gz kiln_amd64.deb kiln_arm64.deb kiln_cache.whl " ] ||
    fail "released: $(cat SHA256SUMS)"
tar -tf kiln-1.2.3.tar.gz | grep -qx kiln-1.2.3/scripts/release.sh || fail "the tarball has $(tar -tf kiln-1.2.3.tar.gz)"

# The same tree is the same bytes; what works alone is no error.
before=$(grep tar.gz SHA256SUMS)
(cd "$tree" && scripts/release.sh ./dev source wheel) >"$folder/said" 2>&1 || fail "$(cat "$folder/said")"
[ "$(grep tar.gz SHA256SUMS)" = "$before" ] || fail "another tarball of the same tree"
echo "release: fine"
