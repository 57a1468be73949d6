#!/bin/sh
# release.sh DEV [PART...]: a rehearsal of a release, in build/release-VERSION: the tarball, Debian's packages for amd64 and
# arm64, Python's wheels for x86-64 and aarch64, the zip for Windows, SHA256SUMS. Each is made and tried by the command of
# ./dev that makes it alone. Nothing is tagged, signed or uploaded. A part whose tools are not installed is skipped with
# the reason; another release of the same tree is the same bytes.
set -eu
cd "$(dirname "$0")/.."
dev=$1
shift
version=$(sed -n 's/^project(kiln VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
out=build/release-$version
mkdir -p "$out"

# part, what it leaves, command
list() {
    cat <<END
source - -
deb build/deb/*.deb package deb
deb-arm64 build/deb-arm64/*.deb package arm64
wheel build/wheel/*.whl package wheel
wheel-arm64 build/wheel-arm64/*.whl package wheel-arm64
windows build/windows-package/*.zip package windows
END
}
[ $# -gt 0 ] || { # shellcheck disable=SC2046 # a list of words
    set -- $(list | cut -d' ' -f1)
    rm -rf "$out"
    mkdir -p "$out"
}

failed=
for part; do
    row=$(list | grep "^$part ") || {
        echo "release: no such part: $part (give $(list | cut -d' ' -f1 | tr '\n' ' '))" >&2
        exit 2
    }
    log=$out/$part.log
    rc=0
    if [ "$part" = source ]; then
        epoch=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y CMakeLists.txt)
        scripts/source_tarball.sh "$out/kiln-$version.tar.gz" "$version" "$epoch" >"$log" 2>&1 || rc=$?
    else
        # shellcheck disable=SC2046 # a list of words
        "$dev" $(echo "$row" | cut -d' ' -f3-) >"$log" 2>&1 </dev/null || rc=$?
        # shellcheck disable=SC2046 # a pattern
        [ "$rc" != 0 ] || cp $(echo "$row" | cut -d' ' -f2) "$out/" || rc=$?
    fi
    reason=$(sed -n -e 's/^dev: missing packages: /missing packages: /p' -e 's/^dev: cannot build /cannot build /p' "$log")
    case $rc:$reason in
    0:*) echo "ok      $part" ;;
    *:?*) echo "skipped $part: $reason" ;;
    *)
        echo "failed  $part: $(tail -n 1 "$log") (status $rc, see $log)"
        failed="$failed $part"
        ;;
    esac
done
cd "$out"
rm -f SHA256SUMS
sums=$(find . -maxdepth 1 -type f ! -name '*.log' -printf '%P\n' | LC_ALL=C sort | xargs sha256sum)
echo "$sums" >SHA256SUMS
sha256sum --quiet -c SHA256SUMS
echo "$out: a rehearsal, without a tag"
cat SHA256SUMS
[ -z "$failed" ] || { echo "release: failed:$failed" >&2 && exit 1; }
