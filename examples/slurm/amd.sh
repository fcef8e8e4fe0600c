#!/bin/bash
# A node with eight AMD GPUs, a rank for each:  sbatch amd.sh ./program ARGUMENTS
# Every rank sees all GPUs and takes the one of its number on the node (SLURM_LOCALID).
#SBATCH --job-name=ferry-amd
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=4
#SBATCH --time=00:10:00
unset ROCR_VISIBLE_DEVICES HIP_VISIBLE_DEVICES GPU_DEVICE_ORDINAL
srun --mpi=pmi2 --cpus-per-task="$SLURM_CPUS_PER_TASK" --cpu-bind=cores --gpu-bind=none "$@"
