#!/bin/sh
# package_reproducible.sh: builds the Debian packages twice, in directories, with a umask, locale, time zone and
# home that differ, and compares what comes out byte by byte.
set -eu
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
copy() {
    mkdir -p "$1"
    git ls-files -z --cached --others --exclude-standard | tar -c --null -T - | tar -x -C "$1"
}
build() {
    mkdir "$work/home$1"
    (cd "$2" && umask "$3" && HOME=$work/home$1 LC_ALL=$4 TZ=$5 scripts/package_deb.sh build/deb >/dev/null)
}
other="$work/another folder/that is/much-longer"
copy "$work/a"
copy "$other"
build 1 "$work/a" 022 C.UTF-8 UTC
build 2 "$other" 077 C Pacific/Kiritimati
cd "$work/a/build/deb"
differ=0
for file in *.deb *.tar.* *.dsc; do
    if cmp "$file" "$other/build/deb/$file"; then
        sha256sum "$file"
    else
        differ=1
    fi
done
[ "$differ" = 0 ] || { echo "not reproducible"; exit 1; }
echo "reproducible: $(find . -maxdepth 1 -name '*.deb' | wc -l) packages and their sources, equal byte by byte"
