"""Training at a local Tinker by the real SDK, asynchronously and with a divergence from the base."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("tinker", reason="the extra tinker is not installed")
pytest.importorskip("uvicorn", reason="the extra web is not installed")

from cuarl.local.tinker import running, served_base
from tests.integration.small_model import qwen3_folder, tokenizer  # noqa: F401
from tests.integration.test_train_cli import measured, options, place  # noqa: F401

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # the SDK's own loop, at exit
]


def test_asynchronous_training_with_a_penalty_goes_on_and_starts_another(place, qwen3_folder, monkeypatch):  # noqa: F811
    small = [
        "train", "--trainer", "tinker", "--tasks", "tasks.json", "--eval-tasks", "tasks.json", "--reward", "luck:luck",
        "--group-size", "3", "--groups-per-batch", "2", "--max-turns", "2", "--max-tokens", "6", "--skip-baseline",
        "--eval-episodes", "2", "--model-name", str(qwen3_folder), "--lora-rank", "4", "--learning-rate", "1e-2",
        "--kl-penalty-coef", "0.1", "--kl-in", "reward", "--compute-post-kl",
    ]  # fmt: skip
    with running(served_base(str(qwen3_folder))) as url:
        for name, value in (("BASE_URL", url), ("API_KEY", "tml-local-key"), ("TELEMETRY", "0")):
            monkeypatch.setenv(f"TINKER_{name}", value)
        first = place.cuarl(*small, "--name", "first", "--max-steps-off-policy", "1", "--max-steps", "2")
        assert first.code == 0, first.err
        folder = place.folder / "runs" / "first"
        flight = json.loads((folder / "checkpoints" / "step-000002" / "stream.json").read_text())
        assert flight["air"], "groups are in flight at the end of a step"
        again = place.cuarl("train", "--resume", "first", "--max-steps", "4")
        assert again.code == 0, again.err
        start = ["--kl-reference", "start", "--load-checkpoint-path", str(folder / "checkpoints" / "latest")]
        second = place.cuarl(*small, *start, "--name", "second", "--max-steps", "1")
        assert second.code == 0, second.err
    rows = {row["step"]: row for row in measured(folder)}
    assert sorted(rows) == [1, 2, 3, 4]
    assert rows[1]["policy/kl_ref"] == pytest.approx(0, abs=1e-6) and rows[4]["policy/kl_ref"] > 1e-5
    assert all(row["policy/kl_post"] > 0 for row in rows.values())
    assert max(row["async/staleness_max"] for row in rows.values()) == 1
    versions = {t.sampled.policy_version for e in place.episodes() for t in e.turns if t.sampled}
    assert versions >= {0, 1, 2}
    (row,) = measured(place.folder / "runs" / "second")
    # from where it began, not from the base
    assert row["policy/kl_ref"] == pytest.approx(0, abs=1e-6)
