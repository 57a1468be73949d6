#!/bin/sh
# carried.sh NATIVE COMMAND...: entries and packs move between machines. What this machine's kiln stores, the
# kiln of another machine (COMMAND, under an emulator) reads, packs and unpacks, and what that one wrote is a
# hit here.
set -eu
native=$1
shift
[ -x "$native" ] || { echo "SKIP: $native is not built: ./dev build release"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
kernel=$(cd "$(dirname "$0")/../.." && pwd)/kernels/c/saxpy.c
compile() { KILN_CACHE_DIR=$1 "$native" compile --target cpu:x86-64 "$kernel"; }
compile "$work/here" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }

KILN_CACHE_DIR=$work/here "$@" verify
KILN_CACHE_DIR=$work/here "$native" ls --json | sed 's/"used[^,}]*//g' >"$work/ls.native"
KILN_CACHE_DIR=$work/here "$@" ls --json | sed 's/"used[^,}]*//g' >"$work/ls.there"
cmp "$work/ls.native" "$work/ls.there"

KILN_CACHE_DIR=$work/here "$native" pack --raw create "$work/native.kpack"
KILN_CACHE_DIR=$work/here "$@" pack --raw create "$work/there.kpack"
cmp "$work/native.kpack" "$work/there.kpack"
KILN_CACHE_DIR=$work/there "$@" pack extract "$work/native.kpack"
KILN_CACHE_DIR=$work/there "$native" verify
compile "$work/there" | tee "$work/log"
grep -q '1 hits\{0,1\}, 0 compiled' "$work/log"
echo "entries and packs were carried to the other machine and back: fine"
