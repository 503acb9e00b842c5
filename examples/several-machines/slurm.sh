#!/bin/bash
# Trains on two machines of eight GPUs: sbatch examples/several-machines/slurm.sh
# Queued again after its time is over, or with the same NAME, it resumes the run.
#SBATCH --job-name=cuarl
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --time=08:00:00
#SBATCH --signal=TERM@120
#SBATCH --requeue
set -euo pipefail

NAME=${NAME:-big}
EXPERIMENT=${EXPERIMENT:-examples/settings-easy.yaml}
PROCESSES=${PROCESSES:-8}
export CUARL_RUNS_DIR=${CUARL_RUNS_DIR:-runs} # the first machine's is used, so a disk of its own will do
export CUARL_GRACE_SECONDS=90                 # less than the 120 s that Slurm leaves above

if [ -e "$CUARL_RUNS_DIR/$NAME/manifest.json" ]; then
    what=(--resume "$NAME")
else
    what=(-c "$EXPERIMENT" --name "$NAME")
fi
mapfile -t machines < <(scontrol show hostnames "$SLURM_JOB_NODELIST")

# one task a machine, each of which starts its processes; if one fails, the others end by themselves
# shellcheck disable=SC2016  # the node's number is each machine's own
srun bash -c 'exec cuarl train "$@" --node-rank "$SLURM_NODEID"' cuarl \
    "${what[@]}" --nodes "$SLURM_NNODES" --processes "$PROCESSES" --rendezvous "${machines[0]}:29500"
