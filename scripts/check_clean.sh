#!/bin/sh
# The build downloads nothing, and nothing in the tree names a developer's machine or binds the code to one.
set -eu
cd "$(dirname "$0")/.."
rc=0
if git grep -nIE 'https?://|git@' -- dev .ci scripts cmake '*CMakeLists.txt' CMakePresets.json \
    ':!scripts/check_clean.sh' | grep -v 'xmlns='; then # a name of XML is no address
    echo "no addresses in the build: it uses Debian's packages by name"
    rc=1
fi
if git grep -nIE '(^|[^A-Za-z0-9_.$}])/(home|root|work|Users)/' -- . ':!scripts/check_clean.sh'; then
    echo "no paths of one machine"
    rc=1
fi
if git grep -nIE '[[:space:]]$' -- '*.c' '*.h' '*.py' '*.sh' '*.cl' '*.cu' dev; then
    echo "no blanks at the end of a line"
    rc=1
fi
exit $rc
