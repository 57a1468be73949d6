#!/bin/sh
# fetch_sources.sh DIRECTORY: puts the sources of the libraries that the Windows and musl builds make into
# DIRECTORY/{zstd,xxhash,jansson,nettle,cmocka}. They are those of this machine's Debian release, checked by apt's
# signatures; nothing is installed, and apt's own lists are left alone.
set -eu
[ $# -eq 1 ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
# shellcheck disable=SC1091
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
# The archive that this machine's packages come from has the sources as well.
# shellcheck disable=SC2016 # the words in the format are apt's
mirror=$(apt-get indextargets --format '$(SITE) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' |
    awk -v release="$release" '$2 == release && $3 == "main" { print $1; exit }')
[ -n "$mirror" ] || { echo "fetch_sources: apt knows no archive of $release" >&2; exit 1; }

work=$folder/partial
rm -rf "$work"
mkdir -p "$work/lists/partial" "$work/cache/archives/partial"
trap 'rm -rf "$work"' EXIT
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $release main" \
    >"$work/sources.list"
apt() {
    apt-get -q -o APT::Sandbox::User=root -o Dir::Etc::sourcelist="$work/sources.list" \
        -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$work/lists" \
        -o Dir::Cache="$work/cache" "$@"
}

# take NAME PACKAGE: unpacks the upstream archive of a source package.
take() {
    for archive in "$work/$2"_*.orig.tar.*; do
        case $archive in *.asc) continue ;; esac
        mkdir -p "$work/$1"
        tar -xf "$archive" -C "$work/$1" --strip-components=1
    done
    rm -rf "${folder:?}/$1"
    mv "$work/$1" "$folder/$1"
}

apt update
(cd "$work" && apt source --download-only libzstd xxhash jansson nettle cmocka)
take zstd libzstd
take xxhash xxhash
take jansson jansson
take nettle nettle
take cmocka cmocka
