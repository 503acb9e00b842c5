#!/bin/sh
# A base that reads learns the phone's tasks of all categories: by imitation of generated tasks first, then by the suites' checks.
#
#     sh examples/wide_learns.sh                             on a GPU with some cores beside it
#     DEMOS=40 SFT=2 RL=1 EVAL=12 sh examples/wide_learns.sh    a few minutes on a CPU: shows that it runs, and no more
#
# The base and both stages are measured on the same instances of the hand-written evaluation suites, which have no goal in common
# with what is generated. Run it where the repository is, or set BASE to the folder of another model.
set -eu
examples=$(dirname "$0")
BASE=${BASE:-$examples/reading-base}
DEMOS=${DEMOS:-12000} SFT=${SFT:-250} RL=${RL:-60} EVAL=${EVAL:-600} WORKERS=${WORKERS:-none} SEED=${SEED:-0}

cuarl tasks generate --count "$DEMOS" --seed 3 --out generated.jsonl
cuarl rollout -c "$examples/wide.yaml" --model-name "$BASE" --tasks generated.jsonl --agent demonstration --episodes "$DEMOS" \
  --astray 2 --workers "$WORKERS" --seed 5 --name wide-demos
cuarl train -c "$examples/wide.yaml" -c "$examples/wide-sft.yaml" --model-name "$BASE" --max-steps "$SFT" --eval-episodes "$EVAL" \
  --seed "$SEED" --name wide-sft
cuarl train -c "$examples/wide.yaml" -c "$examples/wide-rl.yaml" --model-name "$BASE" --max-steps "$RL" --eval-episodes "$EVAL" \
  --workers "$WORKERS" --seed "$SEED" --name wide-rl

imitated=$(ls -d runs/wide-sft/evals/* | tail -n 1)
trained=$(ls -d runs/wide-rl/evals/* | tail -n 1)
cuarl eval --compare "$(ls -d runs/wide-sft/evals/* | head -n 1)" "$imitated"
cuarl eval --compare "$imitated" "$trained"
