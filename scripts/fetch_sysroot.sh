#!/bin/sh
# fetch_sysroot.sh ARCHITECTURE DIRECTORY: unpacks what kiln is built with on another architecture of
# Debian's (arm64, s390x) into DIRECTORY, and what its programs run with into DIRECTORY.run. The packages are those of this machine's release, checked by apt's
# signatures; nothing is installed, and apt's own lists and architectures are left alone.
set -eu
[ $# -eq 2 ] || { echo "usage: $0 ARCHITECTURE DIRECTORY" >&2; exit 2; }
architecture=$1
mkdir -p "$2"
place=$(cd "$2" && pwd)
# shellcheck disable=SC1091
release=$(. /etc/os-release && echo "$VERSION_CODENAME")
# shellcheck disable=SC2016 # the words in the format are apt's
mirror=$(apt-get indextargets --format '$(SITE) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' |
    awk -v release="$release" '$2 == release && $3 == "main" { print $1; exit }')
[ -n "$mirror" ] || { echo "fetch_sysroot: apt knows no archive of $release" >&2; exit 1; }

work=$place.partial
rm -rf "$work"
mkdir -p "$work/lists/partial" "$work/cache/archives/partial" "$work/root"
trap 'rm -rf "$work"' EXIT
: >"$work/status"
echo "deb [arch=$architecture signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $release main" \
    >"$work/sources.list"
apt() {
    apt-get -q -o APT::Sandbox::User=root -o APT::Architecture="$architecture" \
        -o APT::Architectures="$architecture" -o Dir::Etc::sourcelist="$work/sources.list" \
        -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$work/lists" \
        -o Dir::State::status="$work/status" -o Dir::Cache="$work/cache" "$@"
}

apt update
# With no status of its own apt brings what they need, down to libc.
# shellcheck disable=SC2046 # a list of words
apt install -y --download-only --no-install-recommends $(awk '$1 == "sysroot" { print $2 }' \
    "$(dirname "$0")/packages.txt")
for package in "$work"/cache/archives/*.deb; do
    case ${package##*/} in
    lib* | linux-libc-dev_* | zlib1g* | opencl-c-headers_* | glslang-dev_* | nettle-dev_* | spirv-*) ;;
    *) continue ;; # no program: those of this machine are used
    esac
    dpkg -x "$package" "$work/root"
done
# Programs, documents and settings of another machine are not looked for.
rm -rf "$work/root/usr/bin" "$work/root/usr/sbin" "$work/root/bin" "$work/root/sbin" "$work/root/etc" "$work/root/usr/share/doc"
rm -rf "$place" "$place.run"
# QEMU shows a process the files of a directory in the place of those of the same path. Headers are not among them:
# the cross compiler, which runs outside of QEMU, would read other ones than kiln inside sees. Links in the place of
# directories would not do: their targets hide what the machine has there.
mkdir -p "$place.run/usr"
cp -al "$work/root/lib" "$place.run/"
cp -al "$work/root/usr/lib" "$work/root/usr/share" "$place.run/usr/"
mv "$work/root" "$place"
