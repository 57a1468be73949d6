#!/bin/sh
# bridge.sh DIRECTORY: the other half of cc.c: runs the cross compiler on each request in DIRECTORY, until
# the file DIRECTORY/stop is there. Wine's names of directories become this system's, and back.
set -u
cd "$1" || exit 1
drive=$(cd "$WINEPREFIX/drive_c" && pwd -P)
ours() { sed "s#^Z:/*#/#; s#Z:/#/#g; s#C:/#$drive/#g; s#^NUL\$#/dev/null#"; }
answer() {
    name=$PWD/${1%.asked}
    place=$(head -n 1 "$1" | ours)
    set --
    tail -n +2 "$name.asked" | ours >"$name.words"
    while IFS= read -r word; do
        set -- "$@" "$word"
    done <"$name.words"
    rm -f "$name.asked" "$name.words"
    code=0
    (cd "$place" && LC_ALL=C exec x86_64-w64-mingw32-gcc-posix "$@") >"$name.out" 2>"$name.err" </dev/null || code=$?
    sed -i -E "s#$drive/#C:/#g; s#(^|[ \"=])/([a-z])#\1Z:/\2#g" "$name.out" "$name.err"
    echo "$code" >"$name.ready"
    mv "$name.ready" "$name.done"
}
while ! [ -e stop ]; do
    for asked in *.asked; do
        if [ -e "$asked" ]; then answer "$asked"; fi
    done
    sleep 0.02
done
