#!/bin/sh
# cli.sh KILN.exe CASE: tests/cli/run.sh under Wine. What a case says of places (variables, arguments
# that begin with a slash) gets Wine's drive for them, as Windows wants it. Wine's Vulkan is left out: it
# waits for a display.
set -eu
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/kiln" <<END
#!/bin/sh
export WINEPREFIX='${WINEPREFIX:-$source_dir/build/wine/prefix}' WINEDEBUG=-all
export WINEDLLOVERRIDES='mscoree,mshtml,winemenubuilder.exe,vulkan-1='
export LC_ALL=C.UTF-8 # how Wine reads arguments and names
for name in KILN_CACHE_DIR KILN_PACKS KILN_TRACE KILN_RECORD XDG_CACHE_HOME; do
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
