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

# Of an unpacked tree without git, everything.
list() {
    if [ -e .git ]; then
        git ls-files -z --cached --others --exclude-standard
    else
        find . \( -type f -o -type l \) -not -path './build/*' -printf '%P\0'
    fi
}
# The same bytes for the same files, regardless of the user and the time.
list | LC_ALL=C sort -z |
    tar --create --null --files-from=- --owner=0 --group=0 --numeric-owner \
        --mode=u=rwX,go=rX --mtime="@$epoch" --transform="s,^,kiln-$version/," |
    gzip -9n >"$out/kiln_$version.orig.tar.gz"
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
