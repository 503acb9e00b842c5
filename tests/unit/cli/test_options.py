import json
from pathlib import Path
from typing import Annotated

import pytest
import typer

from cuarl.cli.app import run
from cuarl.cli.options import Request, experiment_options
from cuarl.config.keys import keys
from cuarl.config.load import resolve
from cuarl.config.schema import PANELS, EnvFields, TaskFields
from cuarl.errors import TrainError
from cuarl.run import facts
from cuarl.run.manifest import Code, Machine
from cuarl.workflow.episodes import open_store


@pytest.fixture
def seen(add_command):
    """What a command with all panels is called with."""
    calls = []

    @experiment_options(*PANELS)
    def train(experiment: Request, target: Annotated[str, typer.Argument()] = "here", resume: bool = False) -> None:
        """Train.

        With a second paragraph.
        """
        calls.append((experiment, target, resume))

    add_command("train", train)
    return calls


def test_flags_become_fields_with_their_source(seen):
    args = ["--group-size", "4", "--no-use-lora", "--tasks", "a,b", "--tasks", "c", "--learning-rate", "1e-4"]
    assert run(["train", *args, "--algorithm", "grpo", "--resume", "there"]) == 0
    [(experiment, target, resume)] = seen
    config = experiment.config
    assert (config.group_size, config.use_lora, config.tasks, config.learning_rate) == (4, False, ("a,b", "c"), 1e-4)
    assert experiment.resolved.sources["use_lora"] == "--use-lora"
    assert experiment.resolved.sources["seed"] == "default"
    assert (target, resume, experiment.dry_run, experiment.json) == ("there", True, False, False)


def test_files_presets_and_sets_are_taken(seen, tmp_path):
    (tmp_path / "a.yaml").write_text("seed: 1\nlimit: 1\n")
    (tmp_path / "b.json").write_text('{"seed": 2}')
    args = ["-c", "a.yaml", "--config", "b.json", "--preset", "qwen3-vl-lora", "-s", "limit=9", "--set", "top_k=5"]
    assert run(["train", *args]) == 0
    config = seen[0][0].config
    assert (config.seed, config.limit, config.top_k, config.lora_rank) == (2, 9, 5, 32)


def test_every_field_has_its_flag_and_help(seen, capsys):
    run(["train", "--help-all"])
    text = capsys.readouterr().out
    words = text.split()
    for name, key in keys().items():
        assert key.flag in text, name
    assert "(default: 8)" in " ".join(words)
    assert "With a second paragraph." in text


def test_only_the_asked_panels_have_flags(add_command, capsys):
    @experiment_options(TaskFields, EnvFields)
    def rollout(experiment: Request) -> None:
        """Roll out."""

    add_command("rollout", rollout)
    assert run(["rollout", "--clutter", "0.5"]) == 0
    assert run(["rollout", "--learning-rate", "1"]) == 2
    assert run(["rollout", "-s", "learning_rate=1"]) == 0  # a file that serves train serves here, too
    capsys.readouterr()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--group-size", "0"], "group_size must be greater than 0 (got 0)\n  at: --group-size"),
        (["--group-size", "four"], "invalid value for '--group-size'"),
        (["--algorithm", "gppo"], 'there is no algorithm "gppo" (did you mean "ppo"?)\n  at: --algorithm'),
        (["--group-sise", "4"], "no such option: --group-sise"),
        (["-s", "groupsize=4"], 'unknown key "groupsize" (did you mean "group_size"?)\n  at: -s groupsize'),
        (["-c", "gone.yaml"], "No such file or directory\n  at: gone.yaml"),
        (["--preset", "tinny"], 'unknown preset "tinny" (did you mean "tiny"?)'),
    ],
    ids=str,
)
def test_wrong_options_start_nothing(seen, capsys, args, message):
    assert run(["train", *args]) == 2
    assert message in capsys.readouterr().err
    assert seen == []


def test_the_printed_configuration_reads_back(seen, capsys, tmp_path):
    args = ["train", "--group-size", "4", "--tasks", '{"source_type": "ids"}', "--print-config"]
    for name, more in {"back.yaml": [], "back.json": ["--json"]}.items():
        assert run([*args, *more]) == 0
        (tmp_path / name).write_text(capsys.readouterr().out)
        digest = resolve(files=[tmp_path / name]).config.digest
        assert digest == resolve(flags={"group_size": 4, "tasks": ['{"source_type": "ids"}']}).config.digest
    assert seen == []
    assert json.loads((tmp_path / "back.json").read_text())["group_size"] == 4


def test_dry_run_and_json_are_handed_on(seen):
    run(["train", "--dry-run", "--json"])
    assert (seen[0][0].dry_run, seen[0][0].json) == (True, True)


def test_nothing_of_an_experiment_is_read_from_the_environment(seen, monkeypatch):
    monkeypatch.setenv("CUARL_SEED", "9")
    monkeypatch.setenv("SEED", "9")
    run(["train"])
    assert seen[0][0].config.seed == 0


@pytest.fixture
def runs(add_command, tmp_path, monkeypatch):
    """A command that opens its run, and what it opened."""
    monkeypatch.setattr(facts, "code", lambda: Code(version="1"))
    monkeypatch.setattr(facts, "machine", lambda: Machine(python="3", platform="x", cpus=1))
    opened = []

    @experiment_options(*PANELS, resumable=True)
    def train(experiment: Request) -> None:
        """Train."""
        with open_store(experiment.settings) as store, experiment.open_run("train", store) as run:
            opened.append((run, experiment))

    add_command("train", train)
    return opened


def test_a_run_is_made_where_it_is_asked_for(runs, tmp_path):
    assert run(["train", "--runs-dir", "out", "--name", "alpha", "--db", "sqlite:///x.db", "--seed", "3"]) == 0
    [(made, experiment)] = runs
    assert (made.path, made.manifest.seed) == (Path("out/alpha"), 3)
    assert experiment.settings.db_url == "sqlite:///x.db"


def test_a_run_is_resumed_with_its_own_configuration(runs, capsys):
    run(["train", "--name", "alpha", "--seed", "3"])
    assert run(["train", "--resume", "al", "--max-steps", "99"]) == 0
    again, experiment = runs[1]
    assert (experiment.config.seed, experiment.config.max_steps, len(again.manifest.attempts)) == (3, 99, 2)
    assert run(["train", "--resume", "latest", "--seed", "4"]) == 2
    assert "seed: 3 in the run, 4 now" in capsys.readouterr().err


def test_a_taken_name_offers_the_ways_on(runs, capsys):
    run(["train", "--name", "alpha"])
    assert run(["train", "--name", "alpha"]) == 2
    assert "--resume alpha" in capsys.readouterr().err
    assert run(["train", "--name", "alpha", "--overwrite"]) == 0


@pytest.mark.parametrize("other", [["--name", "b"], ["--overwrite"]])
def test_resuming_contradicts_a_new_run(runs, capsys, other):
    run(["train", "--name", "alpha"])
    assert run(["train", "--resume", "alpha", *other]) == 2
    assert "contradict" in capsys.readouterr().err


def test_a_failed_run_is_three_lines_and_the_path_of_its_log(add_command, runs, capsys):
    @experiment_options(TaskFields, resumable=True)
    def fail(experiment: Request) -> None:
        """Fail."""
        with open_store(experiment.settings) as store, experiment.open_run("train", store):
            raise TrainError("no gradient reached the adapter", hint="cuarl doctor")

    add_command("fail", fail)
    assert run(["fail", "--name", "alpha"]) == 1
    err = capsys.readouterr().err
    log = "runs/alpha/logs/attempt-001/cuarl.log"
    assert err == f"error: no gradient reached the adapter\n  fix: cuarl doctor\n  log: {log}\n"
    assert "Traceback" in Path(log).read_text()
