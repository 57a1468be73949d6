#!/bin/sh
# wine.sh PROGRAM [ARG…]: runs a Windows program, with a prefix of its own in build/. Its output comes
# when it ends: Wine's own processes live on with whatever they were started with, and who reads a pipe
# would wait for them.
# wine.sh --start: makes the prefix, and starts a server that stays: one that is on its way out, after
# the last program, fails the next one that starts. wine.sh --stop: ends it.
set -u
folder=$(cd "$(dirname "$0")/.." && pwd)/build/wine
wine=/usr/lib/wine/wine64 server=/usr/lib/wine/wineserver64
[ -x "$server" ] || server=/usr/lib/wine/wineserver
export WINEPREFIX="${WINEPREFIX:-$folder/prefix}" WINEDEBUG="${WINEDEBUG:--all}"
export WINEDLLOVERRIDES='mscoree,mshtml,winemenubuilder.exe='
mkdir -p "$folder/home" "$WINEPREFIX"
export HOME="$folder/home"

# Waits for one that is ending to be gone, and leaves one running that ends with --stop only.
start_server() {
    for second in 1 2 3 4 5 6 7 8 9 10; do
        "$server" -p 2>/dev/null
        started=$? # 2: there is one already
        "$server" -k0 2>/dev/null && [ "$started" -le 2 ] && return 0
        sleep 1
    done
    echo "wine.sh: $server -p ended with $started, and no server runs for $WINEPREFIX after $second s" >&2
    return 1
}

case ${1:-} in
--start)
    start_server || exit 1
    "$wine" wineboot --init >"$folder/start.log" 2>&1 </dev/null && "$wine" cmd /c exit 0 </dev/null && exit 0
    echo "wine.sh: the prefix $WINEPREFIX could not be made:" >&2
    cat "$folder/start.log" >&2
    exit 1
    ;;
--stop)
    "$server" -k 2>/dev/null # 1: there was none
    "$server" -w
    exit 0
    ;;
esac
start_server || exit 1
output=$(mktemp) || exit 1
rc=0
"$wine" "$@" >"$output" 2>&1 </dev/null || rc=$?
cat "$output"
if [ "$rc" -ne 0 ] && [ "$rc" -ne 77 ] && ! [ -s "$output" ]; then
    # A program that did not start says nothing itself.
    echo "wine.sh: $1 ended with exit code $rc and printed nothing"
    "$server" -k0 2>/dev/null && echo "wine.sh: the server runs" || echo "wine.sh: the server is gone"
    echo "wine.sh: $("$wine" --version 2>&1), prefix $WINEPREFIX, $(uptime)"
fi
rm -f "$output"
exit "$rc"
