"""The contest with TRL at its smallest: cuarl's side on its plain path and on the engine, TRL's where TRL is
installed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.peers.__main__ import main
from benchmarks.peers.results import SAME, read
from benchmarks.peers.work import Work, parse_cell

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[2]
CELL = "2:64x32:mixed"
SMALL = {"batch": 4, "group": 2, "micro": 2, "warmup": 0, "steps": 1, "threads": 1}
ENGINE = """
import json, sys, anyio
from benchmarks.peers.own_side import OwnSide
from benchmarks.peers.work import Work
side = OwnSide(Work(**json.loads(sys.argv[1])))
side.policy._has_engine = True
take, taken = side.policy.take_work, []
side.policy.take_work = lambda: taken.append(take()) or taken[-1]
anyio.run(side.run)
steps = sum(work.steps for work in (*taken, take()) if work)
print(json.dumps(side.witness.found | {"steps": steps}))
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    return contest(tmp_path_factory.mktemp("own"), "cuarl")[0]


def contest(folder, sides):
    out = folder / "results.jsonl"
    options = [f"--{name}={value}" for name, value in SMALL.items()]
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", ["peers", "--grid", CELL, "--sides", sides, "--out", str(out), *options])
        main()
    results = read([out])
    assert ended.value.code == 0, [r.get("failed") for r in results]
    return results


def test_cuarl_plays_a_cell(own):
    work = Work(**SMALL | parse_cell(CELL))
    letters = sum(work.letters(a, t) for a in range(2) for t in range(2))
    assert own["answer_tokens"] == own["trained_tokens"] == 2 * letters + 8 * 29
    # the second prompt holds the first and its answer
    assert own["prompt_tokens"][1] > own["prompt_tokens"][0] + own["answer_tokens"] / 2
    assert own["sequence_tokens"] > own["prompt_tokens"][1]
    # what is recorded is the model's own log-probability, not that of the few tokens allowed
    assert abs(own["logprob_diff"]) < 1e-5
    assert 0 < own["rollout_s"] < own["step_s"] == own["first_step_s"]
    assert {"torch", "python"} <= own["versions"].keys()
    assert own["commit"]
    assert own["hardware"]


def test_the_engine_is_forced_to_the_same_answers(own):
    command = [sys.executable, "-c", ENGINE, json.dumps(own["work"])]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("steps") > 29, "the engine was not used"
    assert found == {name: own[name] for name in SAME}


def test_a_side_that_fails_is_a_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["peers", "--grid", CELL, "--timeout", "0.01", "--out", str(tmp_path / "r.jsonl")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["trl", "cuarl"]
    assert {r["failed"] for r in read([tmp_path / "r.jsonl"])} == {"not done after 0.01 s"}


def test_trl_does_the_same(own, tmp_path):
    pytest.importorskip("trl", reason="trl is not installed: pip install trl==1.16.0 datasets")
    (trl,) = contest(tmp_path, "trl")
    assert {name: trl[name] for name in SAME} == {name: own[name] for name in SAME}
