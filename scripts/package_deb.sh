#!/bin/sh
# package_deb.sh [DIRECTORY]: the Debian packages of the files here that git does not ignore, in DIRECTORY (default
# build/deb): the upstream tarball, the source package, the binary packages. Tests are not run but
# with KILN_DEB_CHECK=1. Nothing is signed.
set -eu
cd "$(dirname "$0")/.."
out=${1:-build/deb}
version=$(sed -n 's/^project(kiln VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
epoch=$(dpkg-parsechangelog -l packaging/debian/changelog -S Timestamp)
case $(dpkg-parsechangelog -l packaging/debian/changelog -S Version) in
"$version"-*) ;;
*) echo "packaging/debian/changelog is of another version than CMakeLists.txt: $version" >&2 && exit 1 ;;
esac
mkdir -p "$out"
out=$(cd "$out" && pwd)
tree=$out/kiln-$version
rm -rf "$tree" "$out"/kiln_* "$out"/*.deb

scripts/source_tarball.sh "$out/kiln_$version.orig.tar.gz" "$version" "$epoch"
tar -C "$out" -xf "$out/kiln_$version.orig.tar.gz"
cp -R packaging/debian "$tree/debian"
chmod -R u=rwX,go=rX "$tree"
umask 022
options=nocheck
[ -z "${KILN_DEB_CHECK:-}" ] || options=
cd "$tree"
DEB_BUILD_OPTIONS="$options parallel=${KILN_JOBS:-$(nproc)}" \
    dpkg-buildpackage --unsigned-source --unsigned-changes --unsigned-buildinfo >"$out/log" 2>&1 || {
    tail -n 60 "$out/log" >&2
    echo "the whole log is $out/log" >&2
    exit 1
}
rm -rf "$tree"
cd "$out"
ls -l ./*.deb
