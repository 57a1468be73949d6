#!/bin/sh
# new_backend.sh NAME [TREE]: starts a backend: clones src/apis/fake/backend to src/apis/NAME/backend under its new
# name, adds it to the list of backends, and begins its list of expectations. The clone compiles, runs and
# passes the conformance suite as it is (tests/conformance/clone proves it); replace it file by file.
set -eu

name=${1:-}
tree=${2:-$(cd "$(dirname "$0")/.." && pwd)}
case $name in
'' | *[!a-z0-9]* | [0-9]*)
    echo "usage: $0 NAME [TREE]   (NAME: a-z and 0-9, a letter first)" >&2
    exit 2
    ;;
esac
from=$tree/src/apis/fake/backend
to=$tree/src/apis/$name/backend
list=$tree/src/apis/CMakeLists.txt
if [ -e "$to" ]; then
    echo "$0: $to is there already" >&2
    exit 1
fi
upper=$(printf '%s' "$name" | tr '[:lower:]' '[:upper:]')

mkdir -p "$to" "$tree/tests/conformance/expect"
for file in "$from"/*; do
    base=$(basename "$file" | sed "s/^fake/$name/")
    # The toy language keeps its name until there is a real one; a real backend shows without being asked for.
    sed -e "s/KILN_LANG_FAKE/@LANGUAGE@/g" -e "s/fake/$name/g" -e "s/Fake/$name/g" -e "s/FAKE/$upper/g" \
        -e "s/@LANGUAGE@/KILN_LANG_FAKE/g" -e "s/KILN_CAP_ON_REQUEST | //" "$file" >"$to/$base"
done
sed -i.old "/^set(backends/s/ fake)/ $name fake)/" "$list"
rm -f "$list.old"
grep -q "^set(backends.* $name" "$list" || {
    echo "$0: could not add $name to $list" >&2
    exit 1
}
echo "# What the $name backend is known not to do: \"test: reason\", one a line." \
    >"$tree/tests/conformance/expect/$name.txt"
echo "src/apis/$name/backend is a working copy of the fake backend. Next: read its README.md, take faults.c out,"
echo "replace probe.c, and run: ninja && tests/conformance/conformance $name"
