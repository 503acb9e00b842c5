"""The gym server and gbox-mini-agent over the wire: both ways to act, from rollout to evaluation, faults and a kill."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest

pytest.importorskip("uvicorn", reason="the local servers need the extra web")

from cuarl.env.leases import Ledger
from cuarl.local.faults import Faults
from cuarl.trajectory import Trajectory
from tests import warm
from tests.fakes.gym_server import AGENT_KEY, BOX_KEY, GYM_KEY, Field, field
from tests.integration.rollout_place import Place, bare

pytestmark = pytest.mark.integration
TASK = ("--tasks", "train_02_enable_wifi")
ACTORS = {
    "cuarl": ("--env", "gym", "--gym-settle-ms", "5"),
    "mini-agent": ("--env", "gym", "--gym-actor", "mini-agent", "--gym-poll-seconds", "0.02"),
}


def by_attempt(trajectory: Trajectory) -> float:
    """A reward that differs within a group, so that there is something to learn from."""
    return float(trajectory.attempt)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    bare(monkeypatch, tmp_path)
    monkeypatch.setenv("CUARL_SESSIONS_DIR", str(tmp_path / "sessions"))
    return Place(tmp_path, capsys)


def use(monkeypatch: pytest.MonkeyPatch, servers: Field) -> None:
    for name, value in servers.variables.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("actor", ACTORS)
def test_from_rollout_to_evaluation(actor: str, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    options = (*ACTORS[actor], *TASK, "--max-turns", "3")
    with field() as servers:
        use(monkeypatch, servers)
        rolled = place.cuarl("rollout", *options, "--episodes", "2", "--group-size", "2", "--name", "r", "--json")
        assert rolled.code == 0, rolled.err
        summary = rolled.lines[-1]["summary"]
        assert (summary["n"], summary["failed"]) == (2, 0) and summary["success_rate"] is not None
        trained = place.cuarl(
            "train",
            *options,
            "--group-size",
            "2",
            "--groups-per-batch",
            "1",
            "--max-steps",
            "1",
            "--skip-baseline",
            "--eval-episodes",
            "1",
            "--reward",
            f"{__name__}:by_attempt",
            "--name",
            "t",
            "--json",
        )
        assert trained.code == 0, trained.err
        (step,) = [line for line in trained.lines if line["event"] == "metrics"]
        assert step["optim/updates"] == 1 and step["optim/grad_norm"] > 0 and step["eval/gym/n"] == 1
        measured = place.cuarl("eval", "t", "--episodes", "2", "--json")
        assert measured.code == 0, measured.err
        assert set(measured.lines[-1]["evaluation"]["baselines"]) == {"nothing", "random"}
        counts = servers.gym.counts()
        assert (counts["live"], counts["doubled"]) == (0, 0) and counts["evaluations"] == counts["made"] == 11
    for run in ("r", "t"):
        proven = place.cuarl("rollout", "verify", run, "--json")
        assert proven.code == 0, proven.err
        assert all(version["largest"] < 1e-4 for version in json.loads(proven.out))
    turns = [t for one in place.episodes() for t in one.turns]
    assert all(t.sampled is not None and t.sampled.exact and t.sampled.logprobs and t.sampled.images for t in turns)
    agents = {one.agent for one in place.episodes()}
    assert agents == ({"mini-agent-mai-ui"} if actor == "mini-agent" else {"qwen3-vl-mobile"})


def test_the_mini_agents_samples_depend_on_the_seed_alone(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its client asks for temperature 0; the policy explores all the same, and does so the same way in each run."""

    def texts(name: str, *options: str) -> list[list[str]]:
        command = (
            *ACTORS["mini-agent"],
            *TASK,
            "--max-turns",
            "2",
            "--episodes",
            "4",
            "--group-size",
            "4",
            "--name",
            name,
        )
        done = place.cuarl("rollout", *command, *options, "--json")
        assert done.code == 0, done.err
        episodes = place.episodes(run=done.lines[0]["run_id"])
        by_attempt = sorted(episodes, key=lambda one: one.attempt)
        return [[t.sampled.text for t in one.turns if t.sampled] for one in by_attempt]

    with field() as servers:
        use(monkeypatch, servers)
        first = texts("a")
        assert texts("b") == first and texts("c", "--seed", "1") != first
    assert len({text[0] for text in first}) > 1


def test_a_model_for_other_machines_needs_a_token(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with field() as servers:
        use(monkeypatch, servers)
        refused = place.cuarl("rollout", *ACTORS["mini-agent"], *TASK, "--gym-listen", "0.0.0.0:0")
        assert refused.code == 4 and "CUARL_SERVE_TOKEN" in refused.err
        assert servers.gym.counts()["live"] == 0


@pytest.mark.parametrize("actor", ACTORS)
def test_faults_become_named_failures_and_nothing_is_left(
    actor: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = Faults(refuse=0.1, breaks=0.1, drop=0.05, seed=3)
    with field(faults=faults) as servers:
        use(monkeypatch, servers)
        monkeypatch.setenv("CUARL_LOG_LEVEL", "error")
        done = place.cuarl(
            "rollout",
            *ACTORS[actor],
            *(("--agent", "random") if actor == "cuarl" else ()),
            *TASK,
            "--max-turns",
            "1",
            "--episodes",
            "10",
            "--gym-creates",
            "4",
            "--max-failed-share",
            "1",
            "--name",
            "r",
            "--json",
        )
        assert done.code == 0, done.err
        # a gym that broke off while starting one may have done so; nobody else ever learns its id
        unnamed = sum(one.failure is not None for one in place.episodes())
        assert servers.gym.counts()["live"] <= unnamed and servers.gym.counts()["doubled"] == 0
    failures = [one.failure for one in place.episodes() if one.failure]
    assert len(failures) < 10
    assert all("the gym server" in failure.message for failure in failures)
    assert list((place.folder / "sessions").glob("*.json")) == []


@pytest.mark.parametrize("actor", ACTORS)
def test_sweep_ends_the_executions_of_a_killed_run(actor: str, tmp_path: Path) -> None:
    with field() as servers:
        keys = {**servers.variables, "CUARL_SESSIONS_DIR": str(tmp_path / "s"), "OMP_NUM_THREADS": "1"}
        environment = {**os.environ, **keys}

        def cuarl(*words: str) -> warm.Command:
            return warm.Command(*words, env=environment, cwd=tmp_path, stdout=warm.PIPE, stderr=warm.STDOUT)

        slow = ("--env", "gym", "--gym-settle-ms", "30000", "--agent", "random")
        options = slow if actor == "cuarl" else (*ACTORS[actor], "--max-tokens", "120")
        with cuarl("rollout", *options, *TASK, "--episodes", "2", "--max-turns", "20") as run:
            ledger = Ledger(tmp_path / "s")
            # both: of an execution whose start was not yet answered nobody knows the name
            while sum("execution" in lease.detail for lease in ledger.leases()) < 2 and run.poll() is None:
                time.sleep(0.01)
            assert run.poll() is None, run.stdout and run.stdout.read()
            run.send_signal(signal.SIGKILL)
        assert servers.gym.counts()["live"] > 0
        with cuarl("sessions", "sweep") as swept:
            said = swept.communicate()[0]
        assert swept.returncode == 0, said
        assert servers.gym.counts()["live"] == 0
    marked = [GYM_KEY, BOX_KEY, AGENT_KEY]
    told = [p for p in tmp_path.rglob("*") if p.is_file() and any(key.encode() in p.read_bytes() for key in marked)]
    assert told == []
