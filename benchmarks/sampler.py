"""Turns a second of the in-process sampler, and rows a second of training: ``python benchmarks/sampler.py``.

One batch of 96 prompts on 192x384 screens, answers of the usual length, with a LoRA adapter as in training. ``cold``:
no screenshot was seen before. ``groups``: twelve groups of eight on one screen each, as at the start of a batch.
``warm``: every screenshot was seen before. Wall-clock rates mean something on an idle machine only; processor seconds
hold on a busy one, too, if there is one thread (``--threads 1``).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch
from PIL import Image

from cuarl.agent import formats
from cuarl.agent.prompt import Window, build_messages
from cuarl.policy.generate import generate
from cuarl.policy.inputs import Row
from cuarl.policy.jobs import Job
from cuarl.policy.load import load_policy
from cuarl.policy.prompt import Prompt
from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.sampler import SamplingParams
from cuarl.policy.score import Scorer
from cuarl.policy.spec import LoraSpec, ModelSpec
from cuarl.types import Screenshot

ROWS, WIDTH, HEIGHT, TOKENS = 96, 192, 384, 9


def screen(seed: int) -> Screenshot:
    noise = np.random.default_rng(seed).integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
    shot = Screenshot(Image.fromarray(noise))
    assert shot.digest, "hashed beforehand: environments do it"
    return shot


def prompts(policy: QwenVLPolicy, screens: list[Screenshot]) -> list[Prompt]:
    system = formats.get("qwen3-vl").system_prompt
    made = []
    for i in range(ROWS):
        goal = "Turn on Wi-Fi" + " in the settings" * (i // 8 % 3)
        shown = build_messages(goal, [screens[i % len(screens)]], [], system=system, shown=Window().widest(0))
        prompt = policy.render(shown)
        assert isinstance(prompt, Prompt)
        made.append(prompt)
    return made


def batch(policy: QwenVLPolicy, made: list[Prompt]) -> Callable[[], object]:
    return lambda: generate(policy, [Job(p, SamplingParams(max_tokens=TOKENS), seed=i) for i, p in enumerate(made)])


def training_step(policy: QwenVLPolicy, made: list[Prompt]) -> Callable[[], object]:
    scorer, answer = Scorer(policy), tuple(range(20, 20 + TOKENS))

    def step() -> None:
        policy.model.zero_grad()
        rows = [Row(p.ids, p.screenshots, answer) for p in made]
        scorer(policy.collate(rows)).logprobs.sum().backward()

    return step


def report(name: str, work: Callable[[], object], before: Callable[[], object] = lambda: None) -> None:
    wall, cpu = [], []
    for _ in range(4):
        before()
        start, used = time.perf_counter(), time.process_time()
        work()
        wall.append(time.perf_counter() - start)
        cpu.append(time.process_time() - used)
    print(f"{name:28s} {ROWS / min(wall):8.1f} /s {1000 * min(wall):8.0f} ms {min(cpu):8.2f} processor s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", default="tiny")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    spec = ModelSpec(model=args.model, device=args.device, lora=LoraSpec(), train="adapter")
    policy = load_policy(spec)
    distinct = prompts(policy, [screen(i) for i in range(ROWS)])
    # prompts i and i + 12 share screen and goal length, so there are twelve or more distinct ones
    grouped = [p for p in prompts(policy, [screen(i) for i in range(ROWS)])[::8] for _ in range(8)]
    print(f"{args.model} on {policy.device}, {args.threads} threads, prompts of {len(distinct[0].ids)} tokens")
    clear = policy.vision.cache.clear
    report("sampling, cold", batch(policy, distinct), clear)
    report("sampling, groups", batch(policy, grouped), clear)
    report("sampling, warm", batch(policy, distinct))
    report("training, distinct rows", training_step(policy, distinct))
    report("training, groups", training_step(policy, grouped))


if __name__ == "__main__":
    main()
