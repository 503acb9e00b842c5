"""What both APIs take and answer, in OpenAPI 3.1: ``/api/openapi.json``, for clients to be made from and tests to read.

Answers are described by the records that they are made of; a row of a batch by the fields that pages show.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal

from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cuarl import __version__
from cuarl.monitor.ingest.batch import MOST_ROWS, REFERENCES, SOURCES
from cuarl.monitor.web.desk import Desk
from cuarl.store.pages import EpisodeLine, RunLine
from cuarl.store.records import EvaluationRecord, HumanVerdict, RunRecord
from cuarl.trajectory import Turn
from cuarl.types import ImageRef
from cuarl.web.guard import json_response

Json = dict[str, Any]
PATH = "/api/openapi.json"
_SHOWN: Mapping[str, str] = {
    "training": "run_name status status_message error_message model_name seed config_json current_step total_steps "
    "current_phase progress_percent estimated_remaining_time start_time end_time last_heartbeat",
    "tasks": "task_id name description instruction difficulty category",
    "validators": "validator_type validation_query config_json",
    "environments": "env_type box_type gbox_id",
    "steps": "step loss kl_divergence policy_gradient_norm learning_rate reward_mean reward_std metrics_json",
    "baselines": "model_path status success_rate total_tasks completed_tasks avg_turns start_time end_time",
    "evals": "step model_path status success_rate total_tasks completed_tasks avg_turns start_time end_time",
    "rollouts": "rollout_id source_type group_num env_index status current_phase model_path task_success "
    "validation_passed agent_reported_success ran_out_of_turns reward max_turns rollout_time start_time error_message",
    "turns": "turn model_response thinking text screen_before screen_after reward turn_time start_time",
    "actions": "action_type action_name action_args action_json tool_name tool_args tokens logprobs",
    "observations": "obs_type screenshot_uri",
    "validations": "validation_query expected_result actual_result success",
}
"""The fields of a row that its pages show, beside those by which it refers to others."""
_MEANS = {
    400: "what can't be read, and where", 401: "the token is missing or wrong", 403: "not allowed here",
    404: "not there", 413: "the body is too large", 415: "no application/json",
    503: "the store can't be read or written now",
}  # fmt: skip


def routes(desk: Desk) -> list[Route]:
    """The path of the document."""

    def answer(request: Request) -> Response:
        return json_response(document(desk.prefix), headers={"cache-control": "no-store"})

    return [Route(PATH, answer)]


@lru_cache(maxsize=4)
def document(prefix: str = "") -> Json:
    """The document, of a monitor below ``prefix``."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "cuarl's monitor", "version": __version__, "description": _ABOUT},
        "servers": [{"url": prefix or "/"}],
        "security": [{}, {"monitor": []}],
        "paths": {**_trainings(), **_rollouts(), **_ingest(), PATH: {"get": _get("This document", {"type": "object"})}},
        "components": {
            "schemas": {**_records(), **_answers()},
            "securitySchemes": {
                "monitor": {"type": "http", "scheme": "bearer", "description": "CUARL_MONITOR_TOKEN, where it is set."},
                "project": {"type": "http", "scheme": "bearer", "description": "cuarl monitor tokens create PROJECT"},
            },
        },
    }


_ABOUT = "A training is a run, a rollout an episode. Times are seconds of Unix time. Errors are {'error': …}."


# --- what is asked -------------------------------------------------------------------------------------------------


def _trainings() -> Json:
    run, page = _path("run_id", "A run's id."), _query("page", "From 0.", 100_000)
    kinds: Json = {"type": "string", "enum": ["baseline", "step", "eval"]}
    entry = [_path("kind", "What the entry is.", kinds), _path("id", "An evaluation's id, or RUN:STEP.")]
    status = {"name": "status", "in": "query", "description": "Only these.", "schema": {"type": "string"}}
    before = _query("before", "Only steps before this one.", 10**9)
    return {
        "/api/trainings": {
            "get": _get("Runs, the newest first", _of(trainings=_list("Training"), page=_INTEGER), [page, status])
        },
        "/api/trainings/{run_id}": {"get": _get("One run", _ref("TrainingDetail"), [run])},
        "/api/trainings/{run_id}/timeline": {
            "get": _get(
                "Its baselines, steps and evaluations, by step",
                _of(training_id=_TEXT, timeline=_list("Entry")),
                [run, before],
            )
        },
        "/api/timeline/{kind}/{id}": {"get": _get("An entry with its rollouts", _ref("EntryDetail"), entry)},
    }


def _rollouts() -> Json:
    episode, turn = _path("episode_id", "An episode's id."), _path("turn", "From 0.", _INTEGER)
    name = _path("name", "The screenshot's digest: 64 hexadecimal digits.")
    of, picture = "/api/rollouts/{episode_id}", {"image/png": {"schema": {"type": "string", "format": "binary"}}}
    shown = _get("A screenshot as PNG", {}, [episode, name], content=picture)
    by_itself = _get("A screenshot as PNG", {}, [name], content=picture)
    patch = _get("Overrule a verdict; success null takes earlier ones back", _ref("Override"), [episode])
    patch["requestBody"] = _body(_OVERRIDE)
    patch["responses"] |= _errors(403, 413, 415)
    return {
        of: {"get": _get("An episode, also one that goes on", _ref("Rollout"), [episode])},
        f"{of}/turns/{{turn}}": {"get": _get("A turn with its tokens", _ref("Turn"), [episode, turn])},
        f"{of}/model-input/{{turn}}": {"get": _get("What the model was given", _ref("ModelInput"), [episode, turn])},
        f"{of}/screenshot/{{name}}": {"get": shown},
        "/api/screenshots/{name}": {"get": by_itself},
        f"{of}/validation-override": {"patch": patch},
    }


_OVERRIDE: Json = {
    "type": "object",
    "properties": {
        "success": {"type": ["boolean", "null"]},
        "reason": {"type": "string", "maxLength": 4000},
        "actor": {"type": "string", "maxLength": 200},
    },
    "required": ["success"],
    "additionalProperties": False,
}


def _ingest() -> Json:
    rows: Json = {"type": "array", "maxItems": MOST_ROWS}
    kinds = {kind: {**rows, "items": _row(kind)} if kind != "training" else _row(kind) for kind in REFERENCES}
    ids: Json = {"type": "object", "properties": {"client_id": _nullable("string"), "id": _INTEGER}}
    numbers = {kind: {"type": "array", "items": ids} for kind in REFERENCES if kind != "training"}
    answer = {"type": "object", "properties": {"training_id": _INTEGER, **numbers}}
    posted = {
        "summary": "Keep rows, all of the batch or none",
        "description": f"At most {MOST_ROWS} rows and 64 MiB. Fields that are not named here are kept, too.",
        "security": [{"project": []}],
        "requestBody": _body({"type": "object", "properties": kinds, "additionalProperties": False}),
        "responses": {
            "200": _response("The numbers of the rows", answer),
            **_errors(400, 401, 403, 413, 415, 503),
        },
    }
    return {"/api/ingest/batch": {"post": posted}}


def _row(kind: str) -> Json:
    properties: Json = {name: {} for name in _SHOWN[kind].split()}
    properties |= {key: {**_nullable("integer"), "minimum": 0} for key in REFERENCES[kind]}
    known = "run_name" if kind == "training" else "client_id"
    properties[known] = {"type": "string", "minLength": 1, "maxLength": 500}
    required = [known] if kind == "training" else [next(iter(REFERENCES[kind]))] if REFERENCES[kind] else []
    if kind == "rollouts":
        properties["source_type"], required = {"type": "string", "enum": list(SOURCES)}, ["source_type"]
    return {"type": "object", "properties": properties, "required": required}


def _path(name: str, about: str, schema: Mapping[str, Any] | None = None) -> Json:
    given = schema or {"type": "string", "minLength": 1}
    return {"name": name, "in": "path", "required": True, "description": about, "schema": given}


def _query(name: str, about: str, most: int) -> Json:
    schema = {"type": "integer", "minimum": 0, "maximum": most}
    return {"name": name, "in": "query", "description": about, "schema": schema}


def _get(summary: str, schema: Json, parameters: Iterable[Json] = (), content: Json | None = None) -> Json:
    answer = {"description": summary, "content": content} if content else _response(summary, schema)
    asked = list(parameters)
    codes = [400, 401, 403, 503, *([404] if any(one["in"] == "path" for one in asked) else [])]
    return {"summary": summary, "parameters": asked, "responses": {"200": answer, **_errors(*codes)}}


def _body(schema: Json) -> Json:
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _response(about: str, schema: Json) -> Json:
    return {"description": about, "content": {"application/json": {"schema": schema}}}


def _errors(*codes: int) -> Json:
    return {str(code): _response(_MEANS[code], _ref("Error")) for code in sorted(codes)}


# --- what is answered ----------------------------------------------------------------------------------------------

_TEXT: Json = {"type": "string"}
_INTEGER: Json = {"type": "integer", "minimum": 0}
_NUMBER: Json = {"type": ["number", "null"]}
_METRICS: Json = {"type": "object", "additionalProperties": _NUMBER}


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(name: str) -> Json:
    return {"type": "array", "items": _ref(name)}


def _nullable(kind: str) -> Json:
    return {"type": [kind, "null"]}


def _of(base: str = "", **properties: Json) -> Json:
    """An object with these properties, and those of a record."""
    own: Json = {"type": "object", "properties": properties, "required": list(properties)}
    return {"allOf": [_ref(base), own]} if base else own


def _records() -> Json:
    """The records that answers are made of, as they are sent."""
    made = (RunLine, RunRecord, EvaluationRecord, EpisodeLine, Turn, HumanVerdict, ImageRef)
    mode: Literal["serialization"] = "serialization"
    _, told = models_json_schema([(one, mode) for one in made], ref_template="#/components/schemas/{model}")
    found: Json = {name: _open(schema) for name, schema in told["$defs"].items()}
    found["TurnRecord"] = found.pop("Turn")  # what is sent of it has its own name and more
    return found


def _open(schema: Any) -> Any:
    """Without a word of what else there may be, since answers add fields to records."""
    if isinstance(schema, dict):
        return {key: _open(one) for key, one in schema.items() if (key, one) != ("additionalProperties", False)}
    return [_open(one) for one in schema] if isinstance(schema, list) else schema


def _answers() -> Json:
    entry = _of(kind={"enum": ["baseline", "step", "eval"]}, id=_TEXT, step=_INTEGER, metrics=_METRICS)
    going = _of(id=_TEXT, status={"const": "running"}, current_turn=_INTEGER, max_turns=_INTEGER, turns=_list("Turn"))
    whole = _of("EpisodeLine", rollout_id=_TEXT, turns=_list("Turn"), validation_overrides=_list("HumanVerdict"))
    names = {"run_name": _TEXT, "model_name": _TEXT}
    return {
        "Error": _of(error=_TEXT),
        "Training": _of("RunLine", **names),
        "TrainingDetail": _of("RunRecord", **names, current_phase=_TEXT, progress_percent=_NUMBER),
        "Entry": entry,
        "EntryDetail": {"allOf": [_ref("Entry"), _of(training_id=_TEXT, rollouts=_list("EpisodeLine"))]},
        "Rollout": {"anyOf": [whole, going]},
        "Turn": _of("TurnRecord", turn=_INTEGER, turn_time=_NUMBER, model_response=_nullable("string")),
        "ModelInput": _of(prompt_ids={"type": "array", "items": _INTEGER}, images=_list("ImageRef"), policy=_TEXT),
        "Override": _of("HumanVerdict", page=_TEXT),
    }
