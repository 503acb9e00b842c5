"""The read API, under the names that the seeds' training monitor has, and the one thing that can be changed: a verdict.

A training is a run; its timeline's entries are ``baseline`` (the evaluation at step 0), ``step`` and ``eval``; a
rollout is an episode. Errors are ``{"error": …}``: 400 for what can't be read, 404 for what isn't there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import anyio.to_thread
from pydantic import Field, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from cuarl.errors import StoreError
from cuarl.monitor.web.desk import Desk
from cuarl.monitor.web.pictures import screen
from cuarl.monitor.web.templating import address
from cuarl.monitor.web.views import asked
from cuarl.monitor.web.views.episodes import Whole, sampled_at, whole
from cuarl.monitor.web.views.evaluations import known
from cuarl.monitor.web.views.runs import known_run
from cuarl.monitor.web.views.turns import running
from cuarl.store.pages import PAGE, EpisodeLine
from cuarl.store.records import EvaluationRecord, HumanVerdict, RunRecord
from cuarl.trajectory import Turn
from cuarl.types import Record
from cuarl.web.guard import json_object, json_response
from cuarl.web.refusal import Refusal

Answer = Callable[[Desk, Request], Any]
_KINDS = ("baseline", "step", "eval")
_MOST = 500


class Override(Record):
    """The body of a verdict's override. ``success`` null takes earlier ones back."""

    success: bool | None
    reason: str = Field("", max_length=4000)
    actor: str = Field("", max_length=200)


def routes(desk: Desk) -> list[BaseRoute]:
    """The paths of the API."""
    gets: Mapping[str, Answer] = {
        "/api/trainings": trainings,
        "/api/trainings/{run_id:str}": training,
        "/api/trainings/{run_id:str}/timeline": timeline,
        "/api/timeline/{kind:str}/{id:str}": entry,
        "/api/rollouts/{episode_id:str}": rollout,
        "/api/rollouts/{episode_id:str}/turns/{turn:str}": turn,
        "/api/rollouts/{episode_id:str}/model-input/{turn:str}": model_input,
    }
    found: list[BaseRoute] = [Route(path, _answered(desk, answer)) for path, answer in gets.items()]
    found += [
        Route("/api/rollouts/{episode_id:str}/screenshot/{name:str}", _screenshot(desk)),
        Route("/api/screenshots/{name:str}", _screenshot(desk)),
        Route("/api/rollouts/{episode_id:str}/validation-override", _override(desk), methods=["PATCH"]),
    ]
    return found


def _answered(desk: Desk, answer: Answer) -> Callable[[Request], Response]:
    def answered(request: Request) -> Response:
        try:
            return sent(answer(desk, request))
        except StoreError as error:
            raise Refusal(f"the store can't be read: {error.what}", status=503) from error

    return answered


def sent(body: Any, status: int = 200) -> Response:
    """JSON that nobody keeps."""
    return json_response(body, status, {"cache-control": "no-store", "x-content-type-options": "nosniff"})


# --- trainings -----------------------------------------------------------------------------------------------------


def trainings(desk: Desk, request: Request) -> Any:
    """The list of runs."""
    number = asked.page(request.query_params)
    lines = desk.pages.run_lines(limit=PAGE, offset=number * PAGE, status=request.query_params.get("status"))
    return {
        "trainings": [_plain(line) | {"run_name": line.name, "model_name": line.model} for line in lines],
        "page": number,
    }


def training(desk: Desk, request: Request) -> Any:
    """One run, with how far it has come."""
    return _training(desk, known_run(desk, request.path_params["run_id"]))


def _training(desk: Desk, record: RunRecord) -> dict[str, Any]:
    live = [one for one in desk.pages.live(record.id) if not one.episode_id]
    told = live[0].data if live else {}
    return _fields(record) | {
        "run_name": record.name,
        "model_name": record.model,
        "current_step": record.step,
        "config_json": _plain(record)["config"],
        "current_phase": live[0].phase if live else record.status,
        "progress_percent": told.get("percent"),
        "estimated_remaining_time": told.get("left_s"),
        "last_heartbeat": live[0].at if live else record.heartbeat_at,
    }


def timeline(desk: Desk, request: Request) -> Any:
    """Baselines, steps and evaluations of a run, by step."""
    record = known_run(desk, request.path_params["run_id"])
    names = [
        "episode/success_rate",
        "reward/mean",
        "reward/std",
        "group/frac_mixed",
        "policy/loss",
        "policy/kl_sampler",
        "optim/grad_norm",
    ]
    before = asked.whole(request.query_params, "before")
    steps = desk.pages.at_steps(record.id, names, before=before, limit=_MOST)
    found = [
        {"kind": "step", "id": f"{record.id}:{n}", "step": n, "metrics": values} for n, values in steps.items() if n
    ]
    found += [_evaluation(one) for one in desk.evaluations(record.id)]
    return {"training_id": record.id, "timeline": sorted(found, key=lambda one: (one["step"], one["kind"]))}


def _step(run_id: str, step: int, values: Mapping[str, float]) -> dict[str, Any]:
    measured = {name: value for name, value in values.items() if math.isfinite(value)}
    return {"kind": "step", "id": f"{run_id}:{step}", "training_id": run_id, "step": step, "metrics": measured}


def _evaluation(record: EvaluationRecord) -> dict[str, Any]:
    kind = "eval" if record.step else "baseline"
    return {
        "kind": kind,
        "training_id": record.run_id,
        **_plain(record),
        "success_rate": record.metrics.get("success_rate"),
    }


def entry(desk: Desk, request: Request) -> Any:
    """An entry of a timeline with its rollouts: an evaluation by its id, a step by ``RUN:STEP``."""
    kind, name = request.path_params["kind"], request.path_params["id"]
    if kind not in _KINDS:
        raise Refusal(f"a timeline has {', '.join(_KINDS)}, and no {kind[:40]!r}")
    if kind != "step":
        record = desk.judged([known(desk, name)])[0]
        lines = desk.pages.episode_lines({"evaluation": record.id}, limit=_MOST)
        return _evaluation(record) | {"rollouts": [_line(line) for line in lines]}
    run_id, _, step = name.rpartition(":")
    number = asked.whole({"step": step}, "step")
    if not run_id or number is None:
        raise Refusal("a step is named RUN:STEP")
    record_of = known_run(desk, run_id)
    lines = desk.pages.episode_lines({"run": run_id, "step": number, "purpose": "train"}, limit=_MOST)
    return {
        "kind": "step",
        "id": name,
        "training_id": record_of.id,
        "step": number,
        "metrics": desk.pages.values(run_id, number),
        "rollouts": [_line(line) for line in lines],
    }


# --- rollouts ------------------------------------------------------------------------------------------------------


def rollout(desk: Desk, request: Request) -> Any:
    """One episode without the tokens of its turns; also one that is under way."""
    episode_id = request.path_params["episode_id"]
    found = whole(desk, episode_id)
    if found is not None:
        return _whole(found)
    live = desk.pages.live_episode(episode_id)
    if live is None:
        raise Refusal(f'there is no rollout "{episode_id}"', status=404)
    going = running(live)
    return {
        "id": going.id,
        "run_id": going.run_id,
        "task_id": going.task_id,
        "status": "running",
        "current_phase": going.phase,
        "current_turn": len(going.turns),
        "max_turns": going.max_turns,
        "turns": [_turn(i, one) for i, one in enumerate(going.turns)],
    }


def _whole(found: Whole) -> dict[str, Any]:
    t = found.trajectory
    return _line(found.line) | {
        "turns": [_turn(i, one) for i, one in enumerate(t.turns)],
        "reward_parts": _plain(t.reward_parts),
        "answer": t.answer,
        "validation": _plain(t.verdict),
        "validation_overrides": _plain(found.said),
        "final_screenshot": _plain(t.final_screenshot),
        "env_creation_time": t.ready_s,
        "validation_time": t.check_s,
        "start_time": t.started_at,
    }


def _line(line: EpisodeLine) -> dict[str, Any]:
    return _fields(line) | {"rollout_id": line.id, "task_success": line.success, "num_turns": line.turn_count}


def _turn(number: int, one: Turn) -> dict[str, Any]:
    light = one.model_copy(update={"sampled": None})
    said = one.sampled.text if one.sampled else None
    return _fields(light) | {"turn": number, "turn_time": one.model_s + one.env_s, "model_response": said}


def turn(desk: Desk, request: Request) -> Any:
    """One turn, its action and what was seen, with tokens and log-probabilities."""
    index = asked.whole(request.path_params, "turn")
    found = whole(desk, request.path_params["episode_id"])
    if found is None or index is None or index >= len(found.trajectory.turns):
        raise Refusal("there is no such turn", status=404)
    one = found.trajectory.turns[index]
    sampled = one.sampled.model_copy(update={"prompt_ids": ()}) if one.sampled else None
    return _turn(index, one) | {"sampled": _plain(sampled)}


def model_input(desk: Desk, request: Request) -> Any:
    """What the model was given at a turn: its prompt's ids and its pictures."""
    _, sampled = sampled_at(desk, request)
    return {
        "prompt_ids": list(sampled.prompt_ids),
        "images": _plain(sampled.images),
        "policy": sampled.policy,
        "policy_version": sampled.policy_version,
    }


def _screenshot(desk: Desk) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:
        return screen(desk, request.path_params["name"].removesuffix(".png"))

    return answer


def _override(desk: Desk) -> Callable[[Request], Any]:
    async def answer(request: Request) -> Response:
        if desk.read_only:
            raise Refusal("this monitor only shows: verdicts can't be overruled here", status=403)
        body = await json_object(request)
        try:
            given = Override.model_validate(body)
        except ValidationError as error:
            first = error.errors()[0]
            raise Refusal(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
        episode_id = request.path_params["episode_id"]
        said = HumanVerdict(episode_id=episode_id, success=given.success, reason=given.reason, actor=given.actor)
        try:
            kept = await anyio.to_thread.run_sync(desk.store.save_human_verdict, said)
        except StoreError as error:
            raise Refusal(error.what, status=404 if "no finished episode" in error.what else 503) from error
        return sent(_plain(kept) | {"page": address(desk.prefix, "episodes", episode_id)})

    return answer


def _fields(record: Record) -> dict[str, Any]:
    return record.model_dump(mode="json")


def _plain(value: Any) -> Any:
    """Records as data of JSON."""
    if isinstance(value, Record):
        return value.model_dump(mode="json")
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    return value
