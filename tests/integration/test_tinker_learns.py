"""The real Tinker SDK trains the shipped base through the local server, and the reward rises: docs/guides/tinker.md's
example."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("tinker", reason="the extra tinker is not installed")
pytest.importorskip("uvicorn", reason="the extra web is not installed")

from examples.tinker_learns import train
from tests.integration.rollout_place import bare

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def test_the_reward_rises_in_five_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare(monkeypatch, tmp_path)
    assert train(["--name", "run"], tmp_path) == 0
    lines = [json.loads(line) for line in (tmp_path / "runs" / "run" / "metrics.jsonl").read_text().splitlines()]
    by_step = {line["step"]: line for line in lines}
    assert sorted(by_step) == [0, 1, 2, 3, 4, 5]
    success = "eval/settings_train/success_rate"
    assert by_step[5]["reward/mean"] > by_step[1]["reward/mean"] + 0.1
    assert by_step[5][success] > by_step[0][success]
