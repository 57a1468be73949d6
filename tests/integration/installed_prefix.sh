#!/bin/sh
# installed_prefix.sh BUILD: `kiln exec` as `cmake --install` leaves it, in a directory that was moved since; then laid
# out as in a distribution's package: the library where the system has them, kiln's own below it, no RUNPATH.
set -eu
build=$1
script=$(dirname "$0")/installed_exec.py
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset KILN_LIBEXEC
python3 "$script" --collect "$build" "$folder/parts"
cmake --install "$build" --prefix "$folder/elsewhere" >/dev/null
mv "$folder/elsewhere" "$folder/moved"
echo "== installed to a prefix, and moved"
python3 "$script" "$folder/moved/bin/kiln" "$folder/parts"

echo "== as in a package"
system=$folder/package/lib/machine-linux-gnu
mkdir -p "$folder/package/bin" "$system"
cp -a "$folder/moved/bin/kiln" "$folder/package/bin/"
find "$folder/moved" -name 'libkiln.so.0*' -exec cp -a {} "$system/" \;
cp -a "$folder/moved/libexec/kiln" "$system/kiln"
rm -rf "$folder/moved"
patchelf --remove-rpath "$folder/package/bin/kiln"
LD_LIBRARY_PATH=$system python3 "$script" "$folder/package/bin/kiln" "$folder/parts" an_nvrtc_client_hits a_ptxas_hits \
    a_vulkan_client_hits a_broken_core_is_out_of_the_way

# Two that LD_PRELOAD and the lists of layers cannot name: kiln says so, and the program runs.
for name in "a blank" "a:colon"; do
    mkdir "$folder/$name"
    cp -a "$system/kiln" "$folder/$name/"
    said=$(KILN_LIBEXEC="$folder/$name/kiln" LD_LIBRARY_PATH=$system "$folder/package/bin/kiln" exec -- echo runs \
        2>"$folder/errors")
    [ "$said" = runs ] || { echo "it printed: $said"; exit 1; }
    grep "without a blank or a colon" "$folder/errors" || { cat "$folder/errors"; exit 1; }
done
