#!/bin/sh
# The shipped base learns fourteen pages of MiniWoB++: by imitation of demonstrations first, then by the pages' own rewards.
#
#     sh examples/miniwob_learns.sh
#
# The base and both stages are measured on the same 336 instances, whose seeds are used for nothing else. The last two commands
# compare them page by page. docs/guides/browser.md has what came of it.
set -eu
examples=$(dirname "$0")

cuarl rollout -c "$examples/miniwob.yaml" --agent demonstration --episodes 560 --seed 5 --name miniwob-demos
cuarl train -c "$examples/miniwob.yaml" -c "$examples/miniwob-sft.yaml" --name miniwob-sft
cuarl train -c "$examples/miniwob.yaml" -c "$examples/miniwob-rl.yaml" --name miniwob-rl

base=runs/miniwob-sft/evals/miniwob-step-000000
imitated=$(ls -d runs/miniwob-sft/evals/* | tail -n 1)
trained=$(ls -d runs/miniwob-rl/evals/* | tail -n 1)
cuarl eval --compare "$base" "$imitated" --by-task
cuarl eval --compare "$imitated" "$trained" --by-task
