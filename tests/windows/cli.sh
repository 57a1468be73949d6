#!/bin/sh
# cli.sh KILN.exe CASE [CC.exe]: tests/cli/run.sh under Wine, by kiln.sh. CC.exe becomes $KILN_CC; what it hands
# on, bridge.sh takes.
set -eu
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
bridge=
end() {
    : >"$folder/bridge/stop"
    [ -z "$bridge" ] || wait "$bridge"
    rm -rf "$folder"
}
mkdir "$folder/bridge"
trap end EXIT
export WINEPREFIX="${WINEPREFIX:-$source_dir/build/wine/prefix}"
compiler=
if [ $# -gt 2 ]; then
    compiler="export KILN_CC=\"\${KILN_CC-Z:$3}\" KILN_CC_BRIDGE='Z:$folder/bridge'"
    "$source_dir/tests/windows/bridge.sh" "$folder/bridge" &
    bridge=$!
fi
cat >"$folder/kiln" <<END
#!/bin/sh
$compiler
exec '$source_dir/tests/windows/kiln.sh' '$program' "\$@"
END
chmod +x "$folder/kiln"
CLI_SYSTEM=windows "$source_dir/tests/cli/run.sh" "$folder/kiln" "$2"
