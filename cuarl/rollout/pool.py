"""Runs many episodes at once, within bounds, and puts them back into groups in the order of the plan."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from cuarl import garbage
from cuarl.errors import CuarlError
from cuarl.rollout.episode import run_episode
from cuarl.rollout.failures import FailureWindow, refuse_if_all_failed
from cuarl.rollout.setup import Episode, Setup
from cuarl.rollout.spec import EpisodeSpec
from cuarl.trajectory import Group, Trajectory

Save = Callable[[Episode], Awaitable[None]]
"""Takes each finished episode with its pictures, one at a time, while others run."""
Progress = Callable[[Trajectory, int, int], None]
"""Told of each finished episode: its record, how many are done, how many there are. Must not block."""

_UNSAVED = 64


async def collect(
    plan: Sequence[EpisodeSpec],
    setup: Setup,
    *,
    max_concurrent: int = 8,
    failures: FailureWindow | None = None,
    save: Save | None = None,
    progress: Progress | None = None,
    on_cancel: Callable[[Episode], None] | None = None,
) -> list[Group]:
    """Run every episode of ``plan``, at most ``max_concurrent`` at a time, and return its groups in the plan's order.

    An episode that fails leaves its siblings alone. Raises RolloutError when too many of the last episodes failed
    (``failures``, which may span several collections) or when all of these did, and whatever ``save`` raises; then, as
    on cancellation, the rest is torn down first, and each episode in flight goes to ``on_cancel``.

    With an in-process environment and a batching sampler the order of events, and so each result, depends on the plan
    alone: ``save`` runs while episodes do, which wait for it only when it lags far behind.
    """
    setup.begin()
    done: dict[str, Trajectory] = {}
    slots = anyio.Semaphore(max_concurrent)
    window = failures or FailureWindow()

    async def attempt(spec: EpisodeSpec, finished: MemoryObjectSendStream[Episode]) -> None:
        try:
            episode = await run_episode(spec, setup, on_cancel=on_cancel)
            done[spec.episode_id] = episode.trajectory
            if progress is not None:
                progress(episode.trajectory, len(done), len(plan))
            # Shielded: what is complete is saved even if everything else is cancelled at this moment.
            with anyio.CancelScope(shield=True):
                await finished.send(episode)
            window.note(episode.trajectory)
        finally:
            slots.release()

    send, receive = anyio.create_memory_object_stream[Episode](_UNSAVED)
    with one_error(), garbage.deferred():
        async with anyio.create_task_group() as saving:
            saving.start_soon(_drain, receive, save)
            async with send, anyio.create_task_group() as running:
                for spec in plan:
                    await slots.acquire()
                    running.start_soon(attempt, spec, send)
    refuse_if_all_failed(list(done.values()))
    return [_group(list(specs), done) for _, specs in groupby(plan, key=lambda s: s.group_id)]


async def _drain(receive: MemoryObjectReceiveStream[Episode], save: Save | None) -> None:
    # Shielded, too; it ends when the senders have ended.
    with anyio.CancelScope(shield=True):
        async with receive:
            async for episode in receive:
                if save is not None:
                    await save(episode)


@contextmanager
def one_error() -> Iterator[None]:
    """Raise an error of ours, or the only one there is, alone rather than in the exception group of a task group."""
    try:
        yield
    except BaseExceptionGroup as group:
        errors = list(_leaves(group))
        ours = [e for e in errors if isinstance(e, CuarlError)]
        if not ours and len(errors) > 1:
            raise
        raise (ours or errors)[0] from None


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


def _group(specs: Sequence[EpisodeSpec], done: dict[str, Trajectory]) -> Group:
    first = specs[0]
    trajectories = tuple(done[s.episode_id] for s in specs)
    return Group(group_id=first.group_id, task_id=first.task.task_id, seed=first.seed, trajectories=trajectories)
