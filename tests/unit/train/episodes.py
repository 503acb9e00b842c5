"""Small trajectories made by hand."""

from cuarl.trajectory import Group, Sampled, Trajectory, Turn, Verdict
from cuarl.types import ImageRef, StopReason

SCREEN = ImageRef(digest="0" * 64, width=4, height=4)


def sampled(answer=(7, 8), prompt=(1, 2, 3), **fields):
    fields.setdefault("logprobs", tuple(-0.5 for _ in answer))
    return Sampled(prompt_ids=prompt, token_ids=answer, policy="p", **fields)


def trajectory(reward, *answers, episode="e", group="g", **fields):
    """An episode whose turns are given as token ids or as ``Sampled`` (None: not sampled)."""
    turns = tuple(
        Turn(index=i, screenshot=SCREEN, sampled=sampled(a) if isinstance(a, tuple) else a)
        for i, a in enumerate(answers or ((7, 8),))
    )
    verdict = None if reward is None else Verdict(success=reward >= 1, score=max(0.0, min(1.0, reward)))
    fields = {"stop": StopReason.DONE, "verdict": verdict} | fields
    return Trajectory(
        episode_id=episode, group_id=group, task_id="t", goal="do it", policy="p", turns=turns, reward=reward, **fields
    )


def group(*trajectories, group_id="g"):
    """A group of the given episodes; a number stands for an episode of two tokens with that reward."""
    episodes = tuple(
        t if isinstance(t, Trajectory) else trajectory(t, episode=f"{group_id}/{i}", group=group_id)
        for i, t in enumerate(trajectories)
    )
    return Group(group_id=group_id, task_id="t", trajectories=episodes)
