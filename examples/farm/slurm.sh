#!/bin/sh
#SBATCH --job-name=kiln-warm
#SBATCH --array=1-16
#SBATCH --cpus-per-task=4
#SBATCH --output=warm.%a.log
# sbatch examples/farm/slurm.sh MANIFEST TARGETS; when the array is done, kiln pack merge app.kpack part.*.kpack.
# Every task has a cache of its own on the node, and leaves its part where the job was submitted.
set -eu
export KILN_CACHE_DIR="${SLURM_TMPDIR:-/tmp}/kiln.$SLURM_JOB_ID"
kiln warm "$1" --target "$2" --jobs "$SLURM_CPUS_PER_TASK" --shard "$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT" \
    --pack "$SLURM_SUBMIT_DIR/part.$SLURM_ARRAY_TASK_ID.kpack"
