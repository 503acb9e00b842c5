"""What packing saves: one training step on the shipped base whose prompts hold several screenshots, packed and apart.

    python -m benchmarks.packing                    4 groups of 8 episodes, 6 screenshots and answers in the prompt
    python -m benchmarks.packing --images 3 --turns 5

The policy plays the episodes itself, on the simulated phone. Both ways then learn from the same batch, in turn, each
several times; the figures are medians of seconds. Their gradients are compared, too.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

import anyio
import torch

from benchmarks.rollout import switches
from cuarl.agent import formats
from cuarl.agent.base import Agent
from cuarl.agent.model import ModelAgent
from cuarl.agent.prompt import Window
from cuarl.env.base import Env
from cuarl.env.sim.phone import SimEnv
from cuarl.policy.load import load_policy
from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.sampler import SamplingParams
from cuarl.policy.sampling.local import LocalSampler
from cuarl.policy.spec import LoraSpec, ModelSpec
from cuarl.rollout.pool import collect
from cuarl.rollout.setup import Episode, Setup
from cuarl.rollout.spec import EpisodeSpec, Limits, plan
from cuarl.tasks.task import TaskInstance
from cuarl.train.batch import Batch, BatchConfig
from cuarl.train.config import LearnerConfig
from cuarl.train.learner import Learner
from cuarl.train.loss import LossConfig
from cuarl.types import Screenshot

SWEEPS = 3


def fresh() -> QwenVLPolicy:
    return load_policy(ModelSpec(lora=LoraSpec(), train="adapter"))


def played(policy: QwenVLPolicy, window: Window, *, groups: int, size: int, turns: int) -> Batch:
    """Episodes of the policy's own, as long as they may get: nothing stops a loop."""
    sampler = LocalSampler(policy)
    pictures: dict[str, Screenshot] = {}

    async def make_env(task: TaskInstance) -> Env:
        return SimEnv("small")

    def make_agent(spec: EpisodeSpec, env: Env) -> Agent:
        params = SamplingParams(max_tokens=64)
        return ModelAgent(sampler, formats.get("qwen3-vl"), params=params, window=window)

    async def save(episode: Episode) -> None:
        pictures.update(episode.pictures)

    limits = Limits(max_turns=turns, max_invalid=turns + 1, loop_threshold=turns + 1)
    setup = Setup(make_env=make_env, make_agent=make_agent, join=sampler.join, limits=limits)
    specs = plan(switches()[:groups], group_size=size, run_seed=0, prefix="b")
    return Batch(tuple(anyio.run(lambda: collect(specs, setup, max_concurrent=len(specs), save=save))), pictures)


def step(batch: Batch, *, pack: bool) -> tuple[float, dict[str, float], torch.Tensor]:
    """Seconds and metrics of a step, and its gradient; an entropy bonus keeps groups that end alike."""
    config = LearnerConfig(batch=BatchConfig(pack=pack), loss=LossConfig(entropy_coef=0.01))
    learner = Learner(fresh(), config)
    learner.begin_step(1)
    start = time.perf_counter()
    metrics = learner.update(batch, 1)
    seconds = time.perf_counter() - start
    moments = learner.state()["optimizer"]["state"].values()
    return seconds, metrics, torch.cat([m["exp_avg"].flatten() for m in moments])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--size", type=int, default=8)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--images", type=int, default=6)
    args = parser.parse_args()
    window = Window(history_images=args.images, history_turns=args.images)
    batch = played(fresh(), window, groups=args.groups, size=args.size, turns=args.turns)
    found = {pack: [step(batch, pack=pack) for _ in range(SWEEPS)] for pack in (False, True)}
    apart, packed = (statistics.median(s for s, _, _ in found[pack]) for pack in (False, True))
    metrics, (a, b) = found[True][0][1], (found[pack][0][2] for pack in (False, True))
    usage = [t.sampled.usage for g in batch.groups for e in g.trajectories for t in e.turns if t.sampled]
    print(
        json.dumps(
            {
                "device": next(fresh().base.parameters()).device.type,
                "turns": len(usage),
                "prompt_tokens_mean": round(statistics.mean(u.prompt_tokens for u in usage)),
                "images_mean": round(statistics.mean(u.images for u in usage), 1),
                "packed_frac": round(metrics["train/packed_frac"], 2),
                "apart_s": round(apart, 2),
                "packed_s": round(packed, 2),
                "times_faster": round(apart / packed, 2),
                "gradient_difference": float((a - b).norm() / a.norm()),
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
