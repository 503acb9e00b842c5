"""What the base was pre-trained for, rehearsed while something else is imitated: ``algorithm.rehearsal``."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from typing import TYPE_CHECKING

import anyio.to_thread

from cuarl.agent.formats import SYSTEM_PROMPTS
from cuarl.config.schema import ExperimentConfig
from cuarl.errors import ConfigError
from cuarl.policy.tiny import folder, is_own
from cuarl.train.batch import Batch
from cuarl.trajectory import Group, Trajectory, Turn
from cuarl.types import Screenshot, StopReason

if TYPE_CHECKING:
    from cuarl.policy.prompt import Renderer
    from cuarl.pretrain.calls import Kind
    from cuarl.pretrain.rehearsal import RehearsalMaker, Rehearsed

PAST = 0.25
"""Share of the rounds that show earlier answers, where prompts of the run do."""


def check(config: ExperimentConfig) -> None:
    """Raise ConfigError where something is to be rehearsed and the base was taught in other words, or elsewhere."""
    share = config.learning.rehearsal
    if share and not is_own(config.model_name):
        raise ConfigError(
            f"{config.model_name} was not made by cuarl model build, so what it was pre-trained for can't be drawn",
            where=f"--rehearsal {share:g}",
            hint="leave --rehearsal out, or --model-name tiny",
        )
    if share and config.renderer_name not in ("auto", "qwen3-vl"):
        raise ConfigError(
            f"the base was pre-trained in the words of qwen3-vl, not in those of {config.renderer_name}",
            where=f"--rehearsal {share:g}",
            hint="leave --renderer-name out",
        )


class Rehearsal:
    """Draws what is rehearsed: for a step the same, whoever draws it.

    ``pool`` draws ahead in other processes; None draws in this one when it is needed.
    """

    def __init__(self, make: RehearsalMaker, share: float, seed: int, pool: Executor | None = None) -> None:
        self._make, self._share, self._seed, self._pool = make, share, seed, pool
        self._ahead: dict[tuple[int, int, Kind], Future[Rehearsed]] = {}

    async def added(self, batch: Batch, step: int, beside: Sequence[Group] = ()) -> Batch:
        """``batch`` with what is rehearsed, so that it is ``share`` of the trained tokens, or a bit more.

        ``beside`` are groups that are imitated as well, and in another part of the batch.
        """
        imitated = (*beside, *batch.groups, *batch.earlier)
        kinds = sorted({kind_of(t) for g in imitated for t in g.trajectories})
        wanted = _tokens(imitated) * self._share / (1 - self._share)
        screens: list[Rehearsed] = []
        while sum(screen.tokens for screen in screens) < wanted:
            screens.append(await self._drawn(step, len(screens), kinds[len(screens) % len(kinds)]))
        self._draw_ahead(step + 1, [kinds[i % len(kinds)] for i in range(len(screens) + 1)])
        made = [_group(screen, f"rehearsal/{step}/{i}") for i, screen in enumerate(screens)]
        pictures = {shot.digest: shot for _, shot in made}
        return replace(batch, rehearsal=tuple(g for g, _ in made), pictures={**batch.pictures, **pictures})

    async def _drawn(self, step: int, number: int, kind: Kind) -> Rehearsed:
        ahead = self._ahead.pop((step, number, kind), None)
        draw = partial(self._make, self._name(step, number), kind) if ahead is None else ahead.result
        return await anyio.to_thread.run_sync(draw, abandon_on_cancel=True)

    def _draw_ahead(self, step: int, kinds: Sequence[Kind]) -> None:
        """As many as the step before took, while that is trained."""
        for unused in self._ahead.values():
            unused.cancel()
        if self._pool is not None:
            self._ahead = {
                (step, number, kind): self._pool.submit(self._make, self._name(step, number), kind)
                for number, kind in enumerate(kinds)
            }

    def _name(self, step: int, number: int) -> str:
        return f"{self._seed}/{step}/{number}"


@contextmanager
def rehearsing(config: ExperimentConfig, renderer: Renderer) -> Iterator[Rehearsal | None]:
    """What a run rehearses, drawn by as many processes as it has workers; None if it does not."""
    share = config.learning.rehearsal
    if not share:
        yield None
        return
    from cuarl.pretrain.build import goals
    from cuarl.pretrain.moments import SIZES
    from cuarl.pretrain.rehearsal import RehearsalMaker

    make = RehearsalMaker(
        str(folder(config.model_name)),
        SYSTEM_PROMPTS,
        {kind: renderer.picture_tokens(*size) for kind, size in SIZES.items()},
        goals(),
        PAST if config.history_turns else 0.0,
    )
    processes = int(config.workers) if config.workers is not None and config.workers.isdecimal() else 0
    if not processes:
        yield Rehearsal(make, share, config.seed)
        return
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        try:
            yield Rehearsal(make, share, config.seed, pool)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def kind_of(trajectory: Trajectory) -> Kind:
    """The kind of screens that is rehearsed beside an episode."""
    return "phone" if trajectory.env == "phone" else "desktop"


def _tokens(groups: Collection[Group]) -> int:
    turns = (turn for g in groups for t in g.trajectories for turn in t.turns if turn.sampled)
    return sum(len(turn.sampled.token_ids) for turn in turns if turn.sampled)


def _group(screen: Rehearsed, name: str) -> tuple[Group, Screenshot]:
    """The rounds about a screen as episodes of one turn each, and the screen."""
    shot = Screenshot.encoded(screen.png, screen.picture)
    told = [
        Trajectory(
            episode_id=f"{name}/{i}",
            task_id="rehearsal",
            goal=request,
            turns=(Turn(index=0, screenshot=shot.ref, sampled=said),),
            stop=StopReason.DONE,
        )
        for i, (request, said) in enumerate(screen.rounds)
    ]
    return Group(group_id=name, task_id="rehearsal", trajectories=tuple(told)), shot
