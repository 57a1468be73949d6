#!/bin/sh
# package_chroot.sh [DIRECTORY]: installs the packages that package_deb.sh left in DIRECTORY (default build/deb)
# into a bare Debian 12 made by debootstrap. There it runs, as root and as a user, their smoke test, and as a user
# programs under `kiln exec` (NVRTC, ptxas, OpenCL, Vulkan) and all commands of the guide. Before that, a stranger with sudo
# follows README.md from its top to its end.
# Needs root and the network; KILN_CHROOT names a tree that debootstrap made before, to be used and kept.
set -eu
cd "$(dirname "$0")/.."
debs=$(cd "${1:-build/deb}" && pwd)
root=${KILN_CHROOT:-$(mktemp -d)}
[ -n "${KILN_CHROOT:-}" ] || chmod 755 "$root" # mktemp's 0700 would keep the user out of his own /
cleanup() {
    umount "$root/proc" "$root/sys" 2>/dev/null || true
    [ -n "${KILN_CHROOT:-}" ] || rm -rf --one-file-system "$root"
}
trap cleanup EXIT
[ -d "$root/etc/apt" ] || debootstrap --variant=minbase bookworm "$root" >"$debs/debootstrap.log"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sys "$root/sys" # PoCL asks it for the processors
mkdir -p "$root/kiln"
rm -rf "$root"/kiln/*
find "$debs" -maxdepth 1 -name '*.deb' ! -name '*dbgsym*' -exec cp {} "$root/kiln/" \;
cp packaging/debian/tests/smoke "$root/kiln/"
scripts/installed_parts.sh "$debs/parts"
cp -R "$debs/parts" "$root/kiln/parts"
mkdir "$root/kiln/tree"
git ls-files -z --cached --others --exclude-standard | tar -c --null -T - | tar -x -C "$root/kiln/tree"
chmod -R a+rX "$root/kiln"
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"; }
inside sh -c 'apt-get -q update && apt-get -qy install --no-install-recommends sudo python3 ca-certificates &&
    { id stranger >/dev/null 2>&1 || useradd --create-home stranger; } && echo "stranger ALL=(ALL) NOPASSWD: ALL" >/etc/sudoers.d/stranger &&
    printf "APT::Get::Assume-Yes true;\nAPT::Install-Recommends false;\n" >/etc/apt/apt.conf.d/90stranger' \
    >"$debs/chroot.log" 2>&1 || { tail -n 40 "$debs/chroot.log"; exit 1; }
mkdir -p "$root/kiln/tree/build/deb"
cp "$root"/kiln/*.deb "$root/kiln/tree/build/deb/"
chmod -R a+rX "$root/kiln/tree/build"
echo "== README.md, by a stranger"
inside su stranger -c 'cd && python3 /kiln/tree/tests/integration/guide.py --stranger /usr /kiln/tree/README.md'
inside sh -c 'apt-get -qy install --no-install-recommends /kiln/*.deb gcc libc6-dev pkg-config \
    g++ cmake ninja-build python3 redis-server opencl-c-headers ocl-icd-opencl-dev ocl-icd-libopencl1 pocl-opencl-icd \
    libvulkan1 mesa-vulkan-drivers' \
    >>"$debs/chroot.log" 2>&1 || { tail -n 40 "$debs/chroot.log"; exit 1; }
echo "== as root"
inside HOME=/root sh /kiln/smoke
echo "== as a user"
inside sh -c 'id tester >/dev/null 2>&1 || useradd --create-home tester'
inside su tester -c 'sh /kiln/smoke'
echo "== programs under kiln exec"
inside su tester -c 'cd && python3 /kiln/tree/tests/integration/installed_exec.py /usr/bin/kiln /kiln/parts'
pages=$(sed -n 's/^ *foreach(page \([^)]*\))$/\1/p' tests/integration/CMakeLists.txt)
# shellcheck disable=SC2086 # a list of pages
for page in $(printf 'docs/%s ' $pages); do
    echo "== $page.md"
    inside su tester -c "cd && python3 /kiln/tree/tests/integration/guide.py /usr /kiln/tree/$page.md"
done
echo "== removed"
inside sh -c 'apt-get -qy purge kiln libkiln-dev libkiln0 libkiln0-shaderc libkiln0-remotes python3-kiln' >>"$debs/chroot.log" 2>&1
left=$(inside find /usr /etc -name '*kiln*')
[ -z "$left" ] || { echo "left behind: $left"; exit 1; }
echo "== installed, tested and removed"
