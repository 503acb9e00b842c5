"""``NaN`` and infinities are refused by name wherever they could come in, and written nowhere."""

from __future__ import annotations

import json
import math
from typing import Any

import anyio
import httpx
import pytest
from PIL import Image

from cuarl.env.http import Service
from cuarl.errors import CuarlError, EnvError, RewardError, SamplerError, StoreError, TaskError
from cuarl.monitor.jsonl import JsonLinesSink
from cuarl.policy.remote.http import json_of
from cuarl.rollout.reward import score
from cuarl.run.checkpoints import keep_pending, read_pending
from cuarl.settings import Settings
from cuarl.store.export import read_lines
from cuarl.tasks.files import load_file
from cuarl.tasks.source import load
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import RewardPart, Trajectory, Verdict
from cuarl.types import Observation, Screenshot, StepResult, StopReason

STRANGE = [math.nan, math.inf, -math.inf]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.json", '{"description": "a", "preset": {"x": NaN}}'),
        ("t.json", '{"description": "a", "preset": {"x": 1e999}}'),
        ("t.jsonl", '{"description": "a", "expected_result": 1e999}\n'),
    ],
    ids=lambda text: text[:60],
)
def test_of_a_task_file(tmp_path: Any, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(TaskError, match=r"not a finite number|NaN"):
        load_file(tmp_path / name)


def test_of_a_task_source_of_the_command_line() -> None:
    for number in ("NaN", "1e999"):
        with pytest.raises(TaskError, match=f"{number}"):
            load([f'{{"source_type": "demo_training", "limit": {number}}}'], role=None)


def test_of_a_task_that_a_device_is_sent() -> None:
    task = TaskInstance(task_id="t", goal="g", preset={"x": 1.0}).model_dump_json()
    assert TaskInstance.read(task).preset == {"x": 1.0}
    for number in ("NaN", "-Infinity", "1e999"):
        with pytest.raises(ValueError, match="number"):
            TaskInstance.read(task.replace("1.0", number))


@pytest.mark.parametrize("number", STRANGE)
def test_of_an_environment_s_reward(number: float) -> None:
    shown = Observation(Screenshot(Image.new("RGB", (2, 2))))
    with pytest.raises(EnvError, match="no finite number"):
        StepResult(shown, reward=number)
    assert StepResult(shown, reward=-1e300).reward == -1e300


@pytest.mark.parametrize(
    "given",
    [
        *STRANGE, 10**400, [RewardPart(name="a", value=1), RewardPart(name="bonus", value=math.nan)],
        [RewardPart(name="bonus", value=math.inf), RewardPart(name="b", value=-math.inf)],
        [RewardPart(name="bonus", value=1e308), RewardPart(name="b", value=1e308)],
    ],
    ids=str,
)  # fmt: skip
def test_of_a_reward_function(given: Any) -> None:
    episode = Trajectory(
        episode_id="e", task_id="t", goal="g", stop=StopReason.DONE, verdict=Verdict(success=True, score=1)
    )
    with pytest.raises(RewardError, match=r"bonus|reward"):
        score(episode, lambda trajectory: given)


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999"])
def test_of_a_service_s_answer(number: str) -> None:
    body = f'{{"logprob": {number}}}'
    with pytest.raises(SamplerError, match=number):
        json_of(httpx.Response(200, text=body))

    async def ask() -> None:
        service = Service("the gym", "http://gym")
        service._open = httpx.AsyncClient(
            base_url="http://gym", transport=httpx.MockTransport(lambda r: httpx.Response(200, text=body))
        )
        with pytest.raises(EnvError, match=number):
            await service.json("GET", "x", repeatable=True)
        await service.close()

    anyio.run(ask)


def test_of_an_import(tmp_path: Any) -> None:
    episode = Trajectory(episode_id="e", task_id="t", goal="g", stop=StopReason.DONE, reward=0.5).model_dump_json()
    (tmp_path / "episodes.jsonl").write_text(episode.replace("0.5", "NaN") + "\n")
    with pytest.raises(StoreError, match="NaN"):
        list(read_lines(tmp_path / "episodes.jsonl", Trajectory))


def test_of_an_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for number in ("nan", "inf"):
        monkeypatch.setenv("CUARL_GRACE_SECONDS", number)
        with pytest.raises((CuarlError, ValueError), match=r"(?i)finite|grace"):
            Settings.load()


def test_lines_of_metrics_and_events_are_strict(tmp_path: Any) -> None:
    sink = JsonLinesSink(tmp_path / "metrics.jsonl", tmp_path / "events.jsonl")
    sink.metrics(1, {"loss": math.nan, "grad": math.inf})
    sink.event("x", {"deep": [{"a": -math.inf}]})
    sink.close()
    for name in ("metrics.jsonl", "events.jsonl"):
        assert "null" in (tmp_path / name).read_text() and json.loads(
            (tmp_path / name).read_text(), parse_constant=pytest.fail
        )


def test_metrics_that_wait_in_a_checkpoint_come_back_as_they_were(tmp_path: Any) -> None:
    keep_pending(tmp_path, {"loss": math.nan, "grad": math.inf, "x": 0.1})
    (file,) = tmp_path.iterdir()
    json.loads(file.read_text(), parse_constant=pytest.fail)
    found = read_pending(tmp_path)
    assert found is not None and math.isnan(found["loss"]) and found["grad"] == math.inf and found["x"] == 0.1
