#!/bin/sh
# package_arm64.sh [DIRECTORY]: cross-builds the Debian packages for arm64 in a bare Debian 12 made by debootstrap,
# leaves them in DIRECTORY (default build/deb-arm64), installs them there and runs the command under QEMU.
# Needs root, the network and qemu-user-static; KILN_CHROOT names a tree that debootstrap made before, to be kept.
set -eu
cd "$(dirname "$0")/.."
mkdir -p "${1:-build/deb-arm64}"
out=$(cd "${1:-build/deb-arm64}" && pwd)
root=${KILN_CHROOT:-$(mktemp -d)}
[ -n "${KILN_CHROOT:-}" ] || chmod 755 "$root"
cleanup() {
    umount "$root/proc" 2>/dev/null || true
    [ -n "${KILN_CHROOT:-}" ] || rm -rf --one-file-system "$root"
}
trap cleanup EXIT
[ -d "$root/etc/apt" ] || debootstrap --variant=minbase bookworm "$root" >"$out/debootstrap.log"
mount -t proc proc "$root/proc"
inside() {
    chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root \
        DEBIAN_FRONTEND=noninteractive "$@"
}
logged() { "$@" >>"$out/log" 2>&1 || { tail -n 40 "$out/log" && exit 1; }; }
: >"$out/log"
cp "$(command -v qemu-aarch64-static)" "$root/usr/bin/"

# The tree as package_deb.sh takes it.
rm -rf "$root/kiln"
mkdir -p "$root/kiln/tree"
if [ -e .git ]; then
    git ls-files -z --cached --others --exclude-standard
else
    find . \( -type f -o -type l \) -not -path './build/*' -printf '%P\0'
fi | tar -c --null -T - | tar -x -C "$root/kiln/tree"
logged inside sh -c 'dpkg --add-architecture arm64 && apt-get -q update &&
    apt-get -qy install --no-install-recommends crossbuild-essential-arm64 dpkg-dev fakeroot &&
    cp -R /kiln/tree/packaging/debian /kiln/tree/debian && cd /kiln/tree &&
    apt-get -qy build-dep --no-install-recommends --host-architecture arm64 -P cross,nocheck .'
logged inside env DEB_BUILD_OPTIONS="nocheck parallel=${KILN_JOBS:-$(nproc)}" \
    sh -c 'cd /kiln/tree && dpkg-buildpackage -aarm64 -Pcross,nocheck -b --unsigned-changes --unsigned-buildinfo'
rm -f "$out"/*.deb
find "$root/kiln" -maxdepth 1 -name '*.deb' -exec cp {} "$out/" \;

# Installed next to the packages of the other architecture, with what they depend on.
# shellcheck disable=SC2016 # expanded inside
logged inside sh -c 'apt-get -qy install --no-install-recommends $(find /kiln -maxdepth 1 -name "*_arm64.deb" ! -name "*dbgsym*")'
emulated() { inside env KILN_CACHE_DIR=/kiln/cache qemu-aarch64-static -L / "$@"; }
emulated /usr/bin/kiln version
emulated /usr/bin/kiln doctor || true
emulated /usr/bin/kiln verify
ls -l "$out"/*.deb
