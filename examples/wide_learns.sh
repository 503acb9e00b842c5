#!/bin/sh
# A base that reads learns the phone's tasks of all categories: by imitation of many goals on every screen first, then by the suites' checks.
#
#     sh examples/wide_learns.sh                             on a GPU with some cores beside it
#     IMITATE="--steps 2 --batch 2" RL=1 EVAL=12 WORKERS=2 sh examples/wide_learns.sh    a few minutes on a CPU: shows that it runs, and no more
#
# The base and both stages are measured on the same instances of the hand-written evaluation suites, which have no goal in common
# with what is imitated. Run it where the repository is, or set BASE to the folder of another model.
set -eu
examples=$(dirname "$0")
BASE=${BASE:-$examples/reading-base}
IMITATE=${IMITATE:---minutes 13} RL=${RL:-60} EVAL=${EVAL:-600} WORKERS=${WORKERS:-14} SEED=${SEED:-0}

cuarl eval base -c "$examples/wide.yaml" --model-name "$BASE" --episodes "$EVAL" --seed "$SEED" --name wide-before
# shellcheck disable=SC2086 - several words
cuarl model imitate "$BASE" --out wide-base --workers "$WORKERS" --seed "$SEED" $IMITATE
cuarl train -c "$examples/wide.yaml" -c "$examples/wide-rl.yaml" --max-steps "$RL" --eval-episodes "$EVAL" --workers "$WORKERS" \
  --seed "$SEED" --name wide-rl

before=$(ls -d runs/wide-before/evals/* | head -n 1)
imitated=$(ls -d runs/wide-rl/evals/* | head -n 1)
trained=$(ls -d runs/wide-rl/evals/* | tail -n 1)
cuarl eval --compare "$before" "$imitated"
cuarl eval --compare "$imitated" "$trained"
