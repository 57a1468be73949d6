#!/bin/sh
# consumers.sh BUILD: kiln's tarball in the hands of others. A C++ project takes it in by FetchContent, then by
# add_subdirectory, then has kiln installed with it as a packager does (DESTDIR, a prefix that nobody may write
# to), and finds that with find_package and pkg-config. git and the network are not used.
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
work=$build/tests/consumers # always the same, for ccache
rm -rf "$work"
mkdir -p "$work/bin"
folder=$(mktemp -d)
chmod 755 "$folder"
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
fail() { echo "$*"; exit 1; }
quietly() { "$@" >"$work/log" 2>&1 || { tail -n 40 "$work/log"; exit 1; }; }

# What `git archive` gives: the files that git knows; of a tree without git, all of them.
list() {
    if [ -e "$top/.git" ] && command -v git >/dev/null; then
        git -C "$top" ls-files -z
    else
        (cd "$top" && find . \( -type f -o -type l \) -not -path './build*' -printf '%P\0')
    fi
}
list >"$work/files"
tar -cz -C "$top" --null -T "$work/files" --transform 's,^,kiln-0.1.0/,' -f "$work/kiln.tar.gz"
for program in git curl wget; do
    printf '#!/bin/sh\necho "%s $*" >>"%s/called"\nexit 1\n' $program "$work" >"$work/bin/$program"
    chmod +x "$work/bin/$program"
done
PATH=$work/bin:$PATH
export PATH
offline=
! unshare -n true 2>/dev/null || offline="unshare -n"

launcher=$(sed -n 's/^CMAKE_C_COMPILER_LAUNCHER:[A-Z]*=//p' "$build/CMakeCache.txt")
tree=$work/build
configure() {
    # shellcheck disable=SC2086
    quietly $offline cmake -G Ninja -S "$here/consumer" -B "$tree" -DCMAKE_C_FLAGS=-O0 \
        -DEXAMPLES="$top/examples/installed" -DCMAKE_C_COMPILER_LAUNCHER="$launcher" "$@"
}
make() { quietly cmake --build "$tree" -j 2; }
unset KILN_LIBEXEC
KILN_BACKEND=cpu
export KILN_BACKEND
# try PROGRAM: compiles and runs; the second start compiles nothing.
try() {
    KILN_CACHE_DIR=$(mktemp -d "$folder/XXXXXX")
    export KILN_CACHE_DIR
    "$1" >"$folder/first" || fail "$1: $(cat "$folder/first")"
    "$1" >"$folder/second" || fail "$1: $(cat "$folder/second")"
    grep -q ': compiled, 3$' "$folder/first" || fail "$1: no compilation: $(cat "$folder/first")"
    grep -q ': disk, 3$' "$folder/second" || fail "$1: no hit: $(cat "$folder/second")"
}

configure -DHOW=fetch -DKILN_SOURCE="$work/kiln.tar.gz"
grep '^KILN_\(PROGRAMS\|INSTALL\|TESTS\|BENCH\|WERROR\):BOOL=ON' "$tree/CMakeCache.txt" &&
    fail "a project that only links kiln was given more"
make
try "$tree/by_shared"
try "$tree/by_archive"
grep '"command".*cache_and_runtime' "$tree/compile_commands.json" |
    grep -e -Werror -e -Wconversion -e -iquote -e -fvisibility -e -fmacro-prefix -e banned.h -e KILN_BUILDING &&
    fail "kiln's flags are in the project's command"
ctest --test-dir "$tree" -N 2>&1 | grep -q 'Total Tests: 0\|No tests' || fail "kiln left tests in the project"
quietly cmake --install "$tree" --prefix "$work/own"
[ "$(find "$work/own" -type f)" = "$work/own/bin/by_archive" ] || fail "kiln left install rules in the project"
echo "FetchContent: fine"

# The same tree and objects: nothing of kiln's is compiled again.
configure -DHOW=add -DKILN_SOURCE="$tree/_deps/kiln-src"
make
grep -q 'Building C object' "$work/log" && fail "the two ways compile kiln differently: $(head "$work/log")"
try "$tree/by_archive"
echo "add_subdirectory: fine"

configure -DKILN_PROGRAMS=ON -DKILN_INSTALL=ON -DCMAKE_INSTALL_PREFIX=/opt/kiln
make
DESTDIR=$folder/image quietly cmake --install "$tree"
[ "$(ls "$folder/image")" = opt ] || fail "files outside of the prefix: $(ls "$folder/image")"
[ ! -e "$work/called" ] || fail "called: $(cat "$work/called")"
grep -rIl "$folder\|$work" "$folder/image" && fail "files that know the directory they were made in"
prefix=$folder/image/opt/kiln
chmod -R a-w,a+rX "$prefix"
for file in share/kiln/grafana/kiln.json lib/systemd/system/kiln-metrics@.service lib/systemd/system/kiln-metrics@.timer; do
    [ -f "$prefix/$file" ] || fail "$file is not installed"
done
nm "$(find "$prefix" -name libkiln.a)" 2>/dev/null | grep kn_backend_fake && fail "the backend of the tests is installed"
"$prefix/bin/kiln" devices --backend fake >"$folder/log" 2>&1 && fail "kiln has the backend of the tests"

# Run by a user without a home, and without a place to write; then with a cache of his own.
as_user=
[ "$(id -u)" != 0 ] || as_user="setpriv --reuid=65534 --regid=65534 --clear-groups"
mkdir -m 1777 "$folder/cache"
kiln() {
    # shellcheck disable=SC2086
    env -u KILN_CACHE_DIR -u XDG_CACHE_HOME HOME=/nonexistent TMPDIR="$folder/cache" "$@"
}
manifest=$prefix/share/kiln/kernels/manifest.json
run="$as_user $prefix/bin/kiln run --device cpu:0 --kernel saxpy $manifest"
# shellcheck disable=SC2086
for i in 1 2 3; do
    case $i in 1) set -- ;; *) set -- KILN_CACHE_DIR="$folder/cache/own" ;; esac
    kiln "$@" $run >"$folder/log" 2>&1 || fail "kiln run, $*: $(cat "$folder/log")"
done
grep -q disk "$folder/log" || fail "the installed command does not hit: $(cat "$folder/log")"
echo "installed with DESTDIR: fine"

tree=$work/found
configure -DHOW=find -DCMAKE_PREFIX_PATH="$prefix"
make
try "$tree/by_shared"
try "$tree/by_archive"
echo "find_package: fine"

# pkg-config's archive: by its name where both are installed, by -lkiln where it is alone.
PKG_CONFIG_PATH=$(dirname "$(find "$prefix" -name kiln.pc)")
export PKG_CONFIG_PATH
libs=$(pkg-config --static --libs kiln)
# shellcheck disable=SC2046,SC2086
c++ -o "$work/by_name" "$top/examples/installed/cache_and_runtime.cpp" -std=c++17 $(pkg-config --cflags kiln) \
    $(echo "$libs" | sed 's/-lkiln/-l:libkiln.a/')
try "$work/by_name"
cp -R "$prefix" "$folder/archive"
chmod -R u+w "$folder/archive"
find "$folder/archive" -name 'libkiln.so*' -exec rm {} +
PKG_CONFIG_PATH=$folder/archive/${PKG_CONFIG_PATH#"$prefix"}
# shellcheck disable=SC2046
c++ -o "$work/alone" "$top/examples/installed/cache_and_runtime.cpp" -std=c++17 \
    $(pkg-config --static --cflags --libs kiln)
try "$work/alone"
readelf -d "$work/alone" "$work/by_name" | grep libkiln && fail "linked with the shared library"
echo "pkg-config --static: fine"
