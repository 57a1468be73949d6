#!/bin/sh
# fetch_sources.sh DIRECTORY: puts the sources of the libraries that the Windows and musl builds make into
# DIRECTORY/{zstd,xxhash,jansson,nettle,cmocka,libsodium,hiredis,curl}. They are those of this machine's Debian
# release, checked by apt's signatures; nothing is installed, and apt's own lists are left alone. What reads other
# people's bytes has Debian's patches as well: its security fixes. The last one is there when all are.
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

# patch_source NAME PACKAGE: applies the patches that Debian has for it, in their order.
patch_source() {
    for archive in "$work/$2"_*.debian.tar.*; do
        [ -e "$archive" ] || return 0
        tar -xf "$archive" -C "$work/$1"
    done
    [ -f "$work/$1/debian/patches/series" ] || return 0
    sed -e 's/[[:space:]]*#.*//' -e '/^[[:space:]]*$/d' "$work/$1/debian/patches/series" | while read -r name _; do
        patch -s -f -p1 --no-backup-if-mismatch -d "$work/$1" <"$work/$1/debian/patches/$name"
    done
}

# take NAME PACKAGE [patched]: unpacks the upstream archive of a source package, with Debian's patches.
take() {
    for archive in "$work/$2"_*.orig.tar.*; do
        case $archive in *.asc) continue ;; esac
        mkdir -p "$work/$1"
        tar -xf "$archive" -C "$work/$1" --strip-components=1
    done
    [ -z "${3:-}" ] || patch_source "$1" "$2"
    rm -rf "${folder:?}/$1"
    mv "$work/$1" "$folder/$1"
}

apt update
(cd "$work" && apt source --download-only libzstd xxhash jansson nettle cmocka libsodium hiredis curl)
take zstd libzstd
take xxhash xxhash
take jansson jansson
take nettle nettle
take cmocka cmocka
take libsodium libsodium patched
take hiredis hiredis patched
take curl curl patched
