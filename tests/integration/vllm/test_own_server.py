"""A real vLLM that ``cuarl train`` starts for itself, asynchronously sampled from, and gone with the run."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from tests.integration.rollout_place import Place, bare
from tests.integration.vllm.server import COMMAND, ENVIRONMENT

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(3000),
    pytest.mark.skipif(not COMMAND.is_file(), reason="vLLM is not installed (make vllm)"),
]
ON_A_CPU = "--enforce-eager --max-model-len 2048 --max-num-seqs 64 --max-num-batched-tokens 32768 --enable-scale-out"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    bare(monkeypatch, tmp_path)
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    return Place(tmp_path, capsys)


def test_it_samples_beside_training_every_turn_is_proven_and_it_ends_with_the_run(place: Place) -> None:
    words = "train --tasks settings --difficulty easy --device cpu --group-size 4 --groups-per-batch 2 --max-turns 4"
    words += " --max-steps 3 --max-steps-off-policy 1 --keep-adapters --skip-baseline --eval-episodes 2 --name t"
    python = str(COMMAND.parent / "python")
    done = place.cuarl(*words.split(), "--vllm-python", python, "--vllm-port", "18232", "--vllm-args", ON_A_CPU)
    assert done.code == 0, done.err
    rows = [json.loads(line) for line in (place.folder / "runs" / "t" / "metrics.jsonl").read_text().splitlines()]
    assert [row["async/staleness_max"] for row in rows if "async/staleness_max" in row] == [0, 1, 1]
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", 18232)) != 0, "it still listens"
    found = place.cuarl("rollout", "verify", "t", "--json")
    assert found.code == 0, found.err
    versions = {one["policy_version"]: one for one in json.loads(found.out)}
    assert {0, 1, 2} <= versions.keys()
    assert max(one["largest"] for one in versions.values()) < 1e-4
