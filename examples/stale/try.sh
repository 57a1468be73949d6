#!/bin/sh
# try.sh: the trigger, really: a package with these files is installed below a temporary root, then one that brings a
# driver's file; the trigger must have run. Needs dpkg and no rights.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/db/updates" "$root/db/info" "$root/db/triggers" "$root/watch/DEBIAN" "$root/driver/DEBIAN" "$root/driver/etc/OpenCL/vendors"
: >"$root/db/status"
: >"$root/db/available"
describe() {
    printf 'Package: %s\nVersion: 1\nArchitecture: all\nMaintainer: nobody <nobody@localhost>\nDescription: a try\n' "$1"
}
describe kiln-watch >"$root/watch/DEBIAN/control"
cp "$here/triggers" "$root/watch/DEBIAN/triggers"
# Below another root the script writes there.
# shellcheck disable=SC2016
sed 's#/var/lib/kiln#"$DPKG_ROOT"/var/lib/kiln#g' "$here/postinst" >"$root/watch/DEBIAN/postinst"
chmod 755 "$root/watch/DEBIAN/postinst"
describe some-driver >"$root/driver/DEBIAN/control"
echo libsome.so >"$root/driver/etc/OpenCL/vendors/some.icd"
for package in watch driver; do
    dpkg-deb --build --root-owner-group "$root/$package" "$root/$package.deb" >/dev/null
done
mkdir "$root/target"
dpkg="dpkg --force-not-root --force-script-chrootless --force-bad-path --log=$root/log --admindir=$root/db --instdir=$root/target"
$dpkg -i "$root/watch.deb" >/dev/null
[ ! -e "$root/target/var/lib/kiln/drivers-changed" ]
$dpkg -i "$root/driver.deb" >/dev/null
[ -e "$root/target/var/lib/kiln/drivers-changed" ]
echo "the trigger ran"
