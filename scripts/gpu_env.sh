# shellcheck shell=sh
# tree=TREE; . gpu_env.sh: what programs of such a tree need on a machine with a GPU: their libraries,
# their helpers, the toolkit. For sh, to be read with `.`.
tree=$(cd "$tree" && pwd)
LD_LIBRARY_PATH=$tree/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
KILN_LIBEXEC=$tree/libexec/kiln
PATH=$tree/bin:$PATH
export LD_LIBRARY_PATH KILN_LIBEXEC PATH
if [ -z "${CUDA_PATH:-}" ]; then
    for folder in /usr/local/cuda "$(dirname "$(dirname "$(readlink -f "$(command -v nvcc || echo /x/x/x)")")")" \
        $(python3 -c 'import glob, site
print(*(glob.glob(p + "/nvidia/cu1*") [0:1] and sorted(glob.glob(p + "/nvidia/cu1*"))[-1] for p in site.getsitepackages() if glob.glob(p + "/nvidia/cu1*")))' 2>/dev/null); do
        for lib in "$folder"/lib64/libnvrtc.so.* "$folder"/lib/libnvrtc.so.* "$folder"/targets/*/lib/libnvrtc.so.*; do
            if [ -z "${CUDA_PATH:-}" ] && [ -e "$lib" ]; then
                CUDA_PATH=$folder
                export CUDA_PATH
            fi
        done
    done
fi
if [ -n "${CUDA_PATH:-}" ]; then
    for folder in "$CUDA_PATH/include" "$CUDA_PATH"/targets/*/include; do
        if [ -e "$folder/cuda_fp16.h" ] && [ -z "${TOOLKIT_INCLUDES:-}" ]; then
            TOOLKIT_INCLUDES=$folder/cccl:$folder
            export TOOLKIT_INCLUDES
        fi
    done
fi
echo "toolkit: ${CUDA_PATH:-none found}"
