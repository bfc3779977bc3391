#!/bin/bash
# Carry out a saved plan as an array of Slurm jobs, then finish it:
#
#   tessarr plan rechunk A.zarr B.zarr --chunks 100,50 --memory 4GB --save PLAN
#   sbatch --array=1-200 --cpus-per-task=2 --mem=6G --requeue examples/plans/slurm.sh PLAN
#   sbatch --dependency=singleton --job-name=plan examples/plans/slurm.sh PLAN
#
# A job of an array carries out its part; one that is not of an array does what is missing, and finishes.
#SBATCH --job-name=plan
#SBATCH --time=04:00:00
set -euo pipefail
if [ -n "${SLURM_ARRAY_TASK_ID:-}" ]; then
    exec tessarr run "$1" --part
fi
exec tessarr run "$1" --jobs "${SLURM_CPUS_PER_TASK:-1}"
