#!/bin/sh
# Which layers an adapter should sit on, and of which rank: one training for each file beside this one, from the same
# start with the same tasks and seed, then each against "both", paired by task, and all curves in one picture.
#
#   sh examples/lora/compare.sh --preset qwen3-vl-lora          further options of cuarl train go to each training
set -eu
here=$(dirname "$0")
for variant in both attention mlp rank-8 rank-64; do
  cuarl train -c "$here/$variant.yaml" --name "lora-$variant" "$@"
done
for variant in attention mlp rank-8 rank-64; do
  cuarl eval --compare lora-both "lora-$variant"
done
cuarl eval --curve lora-both --curve lora-attention --curve lora-mlp --curve lora-rank-8 --curve lora-rank-64 --out lora.svg
