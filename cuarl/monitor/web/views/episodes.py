"""A list of episodes, and one of them: a strip of its screens, one of these large with what is known of its turn."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request

from cuarl.monitor.prompt import shortened
from cuarl.monitor.web.desk import Desk
from cuarl.monitor.web.views import asked
from cuarl.monitor.web.views.runs import View
from cuarl.monitor.web.views.turns import Running, Shot, Token, running, shots, tokens
from cuarl.store.pages import PAGE, RESULTS, SORTS, EpisodeLine
from cuarl.store.records import HumanVerdict, RunRecord
from cuarl.trajectory import Sampled, Trajectory
from cuarl.types import StopReason
from cuarl.web.refusal import Refusal

FIELDS = (
    "run",
    "task",
    "suite",
    "category",
    "difficulty",
    "result",
    "stop",
    "failure",
    "step",
    "purpose",
    "policy",
    "device",
)
_MOST_SIBLINGS = 64
"""Attempts at the same instance that are shown beside an episode."""
BOUNDARIES = ("env", "sampler", "agent", "reward", "rollout")


def episodes(desk: Desk, request: Request) -> View:
    """Episodes by conditions, in an order."""
    query = request.query_params
    where, sort, number = asked.where(query), asked.sort(query), asked.page(query)
    found = desk.pages.episode_lines(where, sort=sort, limit=PAGE + 1, offset=number * PAGE)
    values = {
        "where": where,
        "sort": sort,
        "episodes": found[:PAGE],
        "more": len(found) > PAGE,
        "number": number,
        "sorts": SORTS,
        "results": RESULTS,
        "stops": [s.value for s in StopReason],
        "boundaries": BOUNDARIES,
        "name": next((one.name for one in desk.pages.runs_by_id([where.get("run", "")])), where.get("run")),
        "bounded": bool({"run", "task", "group", "evaluation"} & set(where)),
        "suites": sorted({suite for suite in desk.pages.suites().values() if suite}),
    }
    return "episodes.html", values


# --- one episode ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Whole:
    """An episode that is over, with what stands beside it."""

    trajectory: Trajectory
    line: EpisodeLine
    siblings: Sequence[EpisodeLine]
    said: Sequence[HumanVerdict]

    @property
    def advantage(self) -> float | None:
        """How far its reward is from the mean of its group, in standard deviations; None where nothing differs."""
        rewards = [e.reward for e in self.siblings if e.reward is not None]
        reward = self.line.reward
        if reward is None or len(rewards) < 2:
            return None
        mean = math.fsum(rewards) / len(rewards)
        spread = math.sqrt(math.fsum((r - mean) ** 2 for r in rewards) / len(rewards))
        return (reward - mean) / spread if spread > 1e-6 else 0.0


def episode(desk: Desk, request: Request) -> View:
    """One episode, and one of its turns large."""
    episode_id = request.path_params["episode_id"]
    found = whole(desk, episode_id)
    if found is None:
        return _under_way(desk, request, episode_id)
    t = found.trajectory
    strip = shots(t.turns, t.final_screenshot)
    at = _chosen(request, strip, 0)
    run = desk.pages.runs_by_id([t.run_id]) if t.run_id else []
    values = {
        "episode": t,
        "line": found.line,
        "siblings": found.siblings,
        "said": found.said,
        "advantage": found.advantage,
        "run": run[0] if run else None,
        "strip": strip,
        "at": at,
        "shot": strip[at] if strip else None,
        "tokens": _tokens(desk, strip[at], run[0].model, _credit(desk, run[0], found, at)) if strip and run else (),
        "running": None,
        "read_only": desk.read_only,
    }
    return "episode.html", values


def whole(desk: Desk, episode_id: str) -> Whole | None:
    """An episode that is over; None if it isn't, or isn't there."""
    line = desk.pages.episode_line(episode_id)
    trajectory = desk.pages.load([episode_id]).get(episode_id)
    if line is None or trajectory is None:
        return None
    siblings = desk.pages.episode_lines({"group": line.group_id}, limit=_MOST_SIBLINGS) if line.group_id else [line]
    siblings.sort(key=lambda e: (e.attempt, e.id))
    return Whole(trajectory, line, siblings, desk.pages.human_verdicts(episode=episode_id))


def _under_way(desk: Desk, request: Request, episode_id: str) -> View:
    live = desk.pages.live_episode(episode_id)
    if live is None:
        raise Refusal(f'there is no episode "{episode_id}", or it has only just begun', status=404)
    going: Running = running(live)
    strip = shots(going.turns, going.screen)
    at = _chosen(request, strip, max(0, len(strip) - 1))
    run = desk.pages.runs_by_id([going.run_id])
    values = {
        "episode": going,
        "running": going,
        "run": run[0] if run else None,
        "strip": strip,
        "at": at,
        "shot": strip[at] if strip else None,
        "tokens": (),
        "read_only": True,
        "line": None,
        "siblings": (),
        "said": (),
        "advantage": None,
    }
    return "episode.html", values


def _chosen(request: Request, strip: Sequence[Shot], default: int) -> int:
    at = asked.whole(request.query_params, "turn", default, most=10**6)
    return min(at if at is not None else default, max(0, len(strip) - 1))


def _credit(desk: Desk, run: RunRecord, found: Whole, at: int) -> float | None:
    """The advantage of a turn, if it was trained on."""
    group = found.line.group_id
    if found.line.purpose != "train" or group is None:
        return None
    rewards = [e.reward for e in found.siblings]
    own = next((i for i, e in enumerate(found.siblings) if e.id == found.line.id), None)
    if own is None or len(rewards) >= _MOST_SIBLINGS:  # a group that is not whole has another mean
        return None
    credit = desk.credit(run.config, rewards, lambda: desk.pages.group(group))
    mine = credit[own] if own < len(credit) else None
    if mine is None or isinstance(mine, float):
        return mine
    return mine[at] if at < len(mine) else None


def _tokens(desk: Desk, shot: Shot, model: str, advantage: float | None) -> list[Token]:
    sampled = shot.turn.sampled if shot.turn else None
    if sampled is None or not sampled.token_ids:
        return []
    return tokens(desk.pieces(model, sampled.token_ids), sampled.token_ids, sampled.logprobs, advantage)


def prompt(desk: Desk, request: Request) -> View:
    """What the model was shown at a turn: its window of pictures and its text; made when somebody asks for it."""
    t, sampled = sampled_at(desk, request)
    run = desk.pages.runs_by_id([t.run_id]) if t.run_id else []
    pieces = desk.pieces(run[0].model if run else "", sampled.prompt_ids) if sampled.prompt_ids else None
    text = None if pieces is None else shortened("".join(pieces))
    return "prompt.html", {"sampled": sampled, "text": text}


def sampled_at(desk: Desk, request: Request) -> tuple[Trajectory, Sampled]:
    """The model's answer at the turn that a path names. Raises Refusal."""
    episode_id, index = request.path_params["episode_id"], asked.whole(request.path_params, "turn")
    t = desk.pages.load([episode_id]).get(episode_id)
    turn = next((one for i, one in enumerate(t.turns) if i == index), None) if t else None
    if t is None or turn is None or turn.sampled is None:
        raise Refusal("no model was asked there", status=404)
    return t, turn.sampled
