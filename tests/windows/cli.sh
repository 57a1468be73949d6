#!/bin/sh
# cli.sh KILN.exe CASE [CC.exe]: tests/cli/run.sh under Wine. What a case says of places (variables, arguments
# that begin with a slash) gets Wine's drive for them, as Windows wants it. Wine's Vulkan is left out: it
# waits for a display. CC.exe becomes $KILN_CC; what it hands on, bridge.sh takes.
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
export WINEDEBUG=-all
$compiler
export WINEDLLOVERRIDES='mscoree,mshtml,winemenubuilder.exe,vulkan-1='
export LC_ALL=C.UTF-8 # how Wine reads arguments and names
for name in KILN_CACHE_DIR KILN_PACKS KILN_TRACE KILN_RECORD XDG_CACHE_HOME CUDA_PATH FAKENVRTC_LOG; do
    eval "value=\\\${\$name:-}"
    case \$value in
    /*) export "\$name=\$(printf '%s' "\$value" | sed 's#:#;#g; s#^/#Z:/#; s#;/#;Z:/#g')" ;;
    esac
done
count=\$#
while [ "\$count" -gt 0 ]; do
    case \$1 in
    /*) set -- "\$@" "Z:\$1" ;;
    *) set -- "\$@" "\$1" ;;
    esac
    shift
    count=\$((count - 1))
done
exec /usr/lib/wine/wine64 '$program' "\$@"
END
chmod +x "$folder/kiln"
CLI_SYSTEM=windows "$source_dir/tests/cli/run.sh" "$folder/kiln" "$2"
