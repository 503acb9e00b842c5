"""cuarl's side: its sampler, its runner of episodes and its learner, as ``cuarl train`` uses them, without a store."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import anyio
import torch
from PIL import Image
from transformers import Qwen2VLImageProcessorPil

from benchmarks.peers.answers import Answers, Witness
from benchmarks.peers.clock import Clock
from benchmarks.peers.forcing import Forcing
from benchmarks.peers.model import IMAGES, click_schema, make_model, make_tokenizer
from benchmarks.peers.phone import SYSTEM, Phone, progress, request
from benchmarks.peers.work import Work
from cuarl.agent.base import Decision
from cuarl.env.base import Capabilities
from cuarl.policy.adapters.lora import add_lora
from cuarl.policy.qwen_vl.images import ImageProcessor
from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.qwen_vl.special import special_ids
from cuarl.policy.sampler import Message, Picture, PromptTooLong, SampledText, SampleRequest, SamplingParams, Text
from cuarl.policy.sampling.local import LocalSampler
from cuarl.policy.spec import LoraSpec
from cuarl.rollout.pool import collect
from cuarl.rollout.setup import Episode, Setup
from cuarl.rollout.spec import EpisodeSpec, Limits, plan
from cuarl.tasks.task import Check, Task, TaskInstance
from cuarl.train.batch import Batch, BatchConfig
from cuarl.train.config import LearnerConfig
from cuarl.train.learner import Learner
from cuarl.trajectory import Turn
from cuarl.types import Action, Click, Observation, Screenshot, StepResult

_NUMBERS = re.compile(r'"x": (\d+), "y": (\d+)')


class Device:
    """The phone as an environment. Every second attempt counts as a success, so that each group teaches something."""

    capabilities = Capabilities(actions=frozenset({"click"}), state=True)

    def __init__(self, work: Work, attempt: int, seed: int, app: str) -> None:
        self._work, self._attempt, self._seed, self._app = work, attempt, seed, app
        self._phone, self._clicks = Phone(work.width, work.height), 0

    async def reset(self, task: object, seed: int) -> Observation:
        return Observation(Screenshot(self._phone.start(self._seed, self._app)))

    async def step(self, action: Action) -> StepResult:
        assert isinstance(action, Click)
        await anyio.sleep(self._work.delay_ms / 1000)
        self._clicks += 1
        x, y = action.x * 1000 // self._work.width, action.y * 1000 // self._work.height
        return StepResult(Observation(Screenshot(self._phone.tap(x, y))))

    async def state(self) -> dict[str, object]:
        return {"done": self._attempt % 2 if self._clicks else 0}

    async def close(self) -> None:
        pass


class Conversation:
    """The messages of an episode: the whole history, as TRL's trainer shows it."""

    def __init__(self, system: str, app: str, turns: int) -> None:
        self.messages = [Message("system", (Text(system),))]
        self._app, self._turns, self._step = app, turns, 0

    def show(self, screen: Screenshot) -> None:
        """A picture, with the request or as the answer to a call."""
        parts: tuple[Any, ...] = (Picture(screen), Text(request(self._app)))
        if self._step:
            below = Text(f"{progress(self._step, self._turns)}\n</tool_response>")
            parts = (Text("<tool_response>\n"), Picture(screen), below)
        self._step += 1
        self.messages.append(Message("user", parts))

    def hear(self, text: str, token_ids: tuple[int, ...]) -> None:
        """The policy's answer."""
        self.messages.append(Message("assistant", (SampledText(text, token_ids),)))


class Contestant:
    """Asks the sampler, and reads the call of an answer."""

    name = "contest"

    def __init__(self, side: OwnSide, spec: EpisodeSpec, app: str) -> None:
        self._side, self._attempt = side, spec.attempt
        self._talk = Conversation(side.system, app, side.work.turns)

    async def act(self, task: object, observation: Observation, history: Sequence[Turn], seed: int) -> Decision:
        if history and (said := history[-1].sampled):
            self._talk.hear(said.text, said.token_ids)
        self._talk.show(observation.screenshot)
        side = self._side
        side.forcing.expect(seed, side.answers.kind(self._attempt, len(history)))
        sampled = await side.sampler.sample(SampleRequest(tuple(self._talk.messages), side.params, seed))
        if isinstance(sampled, PromptTooLong):
            return Decision(too_long=sampled)
        found = _NUMBERS.search(sampled.text)
        if found is None:
            raise RuntimeError(f"not the answer that was forced: {sampled.text!r}")
        x, y = int(found[1]) * side.work.width // 1000, int(found[2]) * side.work.height // 1000
        return Decision(action=Click(x=x, y=y), sampled=sampled)


class OwnSide:
    """A policy with its sampler and learner, and the steps of a cell."""

    def __init__(self, work: Work) -> None:
        self.work, tokenizer = work, make_tokenizer(work.shape)
        self.answers = Answers(work, tokenizer)
        model = make_model(work, tokenizer)
        self.policy = QwenVLPolicy(
            add_lora(model, LoraSpec(rank=16, alpha=32)),
            tokenizer,
            ImageProcessor(Qwen2VLImageProcessorPil(**IMAGES)),
            special_ids(model.config, model.generation_config, tokenizer),
            name="contest",
        )
        told = tokenizer.apply_chat_template(
            [{"role": "system", "content": SYSTEM}], tools=[click_schema()], tokenize=False
        )
        self.system = told.removeprefix("<|im_start|>system\n").removesuffix("<|im_end|>\n")
        self.forcing = Forcing(self.answers, model.config.text_config.vocab_size, self.policy.device)
        self.params = SamplingParams(max_tokens=self.answers.longest + 8)
        self.sampler = LocalSampler(self.policy, max_wait_s=None)
        batch = BatchConfig(max_tokens=work.micro * (self._longest() + 8))
        self.learner = Learner(
            self.policy,
            LearnerConfig(batch=batch, gradient_checkpointing=work.checkpointing, activation_gib=work.activation_gib),
        )
        self.clock, self.witness = Clock(work.device), Witness(self.answers)
        self.logprob_diff = 0.0
        """Mean difference between recorded log-probabilities and those of the update, nats."""

    async def run(self) -> None:
        """All steps."""
        for step, tasks in enumerate(self.work.tasks()):
            self.clock.begin()
            self.learner.begin_step(step + 1)
            batch = await self._play(step, tasks)
            self.clock.rolled()
            metrics = self.learner.update(batch, step + 1)
            self.clock.updated()
            self._note(batch, metrics)

    async def _play(self, step: int, tasks: Sequence[tuple[int, str]]) -> Batch:
        work, pictures = self.work, {}
        named = {f"phone-{i}": task for i, task in enumerate(tasks)}

        attempts = defaultdict[str, Iterator[int]](count)

        async def make_env(task: TaskInstance) -> Device:
            return Device(work, next(attempts[task.task_id]), *named[task.task_id])

        def make_agent(spec: EpisodeSpec, env: object) -> Contestant:
            return Contestant(self, spec, named[spec.task.task_id][1])

        async def save(episode: Episode) -> None:
            pictures.update(episode.pictures)

        done = (Check(path="done", value=1),)
        planned = [
            Task(id=name, description=request(app), max_steps=work.turns, checks=done)
            for name, (_, app) in named.items()
        ]
        specs = plan(planned, group_size=work.group, run_seed=step, prefix=f"step{step}")
        limits = Limits(max_turns=work.turns, turn_s=3600, deadline_s=36_000, loop_threshold=work.turns + 1)
        setup = Setup(make_env=make_env, make_agent=make_agent, join=self.sampler.join, limits=limits)
        groups = await collect(specs, setup, max_concurrent=work.batch, save=save)
        for trajectory in (t for g in groups for t in g.trajectories):
            if trajectory.failure or len(trajectory.turns) != work.turns:
                raise RuntimeError(f"an episode ended after {len(trajectory.turns)} turns: {trajectory.failure}")
        return Batch(tuple(groups), pictures)

    def _note(self, batch: Batch, metrics: Mapping[str, float]) -> None:
        if metrics["optim/updates"] != 1:
            raise RuntimeError(f"{metrics['optim/updates']:g} updates in a step, not one")
        self.logprob_diff = metrics["policy/logprob_diff_mean"]
        episodes = [[t.sampled for t in e.turns if t.sampled] for g in batch.groups for e in g.trajectories]
        answers = sum(len(said.token_ids) for turns in episodes for said in turns)
        self.witness.step(
            [[turns[i].prompt_ids for turns in episodes] for i in range(self.work.turns)],
            answers,
            sum(len(turns[-1].prompt_ids) + len(turns[-1].token_ids) for turns in episodes),
            int(metrics["train/tokens"]),
        )

    def _longest(self) -> int:
        """Tokens of the longest episode."""
        screen = Screenshot(Image.new("RGB", (self.work.width, self.work.height)))
        longest = 0
        for attempt in range(self.work.group):
            talk = Conversation(self.system, "Mail", self.work.turns)
            for turn in range(self.work.turns):
                talk.show(screen)
                prompt = self.policy.render(talk.messages)
                assert not isinstance(prompt, PromptTooLong)
                answer = self.answers.length(attempt, turn)
                talk.hear("", (0,) * answer)
                longest = max(longest, len(prompt.ids) + answer)
        return longest


def run(work: Work) -> dict[str, Any]:
    """Play and train; what was measured and what was done."""
    if work.device == "cpu":
        torch.set_num_threads(work.threads)
    side = OwnSide(work)
    anyio.run(side.run)
    return {**side.clock.summary(work.warmup), **side.witness.found, "logprob_diff": round(side.logprob_diff, 6)}
