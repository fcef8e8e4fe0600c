#!/bin/bash
# Two nodes of CPUs, a rank on every core:  sbatch cpu.sh ./program ARGUMENTS
#SBATCH --job-name=ferry-cpu
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=32
#SBATCH --cpus-per-task=1
#SBATCH --time=00:10:00
export FERRY_WARN_AFTER=30
srun --mpi=pmi2 --cpu-bind=cores "$@"
