#!/bin/sh
# run.sh [TREE] [off|on|warm|cold|ten|herd|thousand ...]: the comparisons of bench/cuda, from a tree that
# scripts/gpu_tree.sh made (default .gpu). Default: ten herd warm off. Needs a GPU but for `ten`.
set -eu
cd "$(dirname "$0")/../.."
tree=.gpu
if [ $# -gt 0 ] && [ -d "$1" ]; then
    tree=$1
    shift
fi
[ $# -gt 0 ] || set -- ten herd warm off
. scripts/gpu_env.sh
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || echo "no nvidia-smi"
uname -sr
nproc
exec python3 bench/cuda/compare.py "$tree" "$@"
