#!/bin/sh
# source_tarball.sh FILE VERSION SECONDS: the files here that git does not ignore (of an unpacked tree without git,
# everything) in FILE, below kiln-VERSION. The same bytes for the same files, regardless of the user and the time.
set -eu
file=$1 version=$2 epoch=$3
cd "$(dirname "$0")/.."
list() {
    if [ -e .git ]; then
        git ls-files -z --cached --others --exclude-standard
    else
        find . \( -type f -o -type l \) -not -path './build/*' -printf '%P\0'
    fi
}
list | LC_ALL=C sort -z |
    tar --create --null --files-from=- --owner=0 --group=0 --numeric-owner \
        --mode=u=rwX,go=rX --mtime="@$epoch" --transform="s,^,kiln-$version/," |
    gzip -9n >"$file"
