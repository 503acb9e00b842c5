import json
import logging
import os
import re
import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from cuarl import safe_text
from cuarl.config.load import resolve
from cuarl.errors import BarMissed, ConfigError, CuarlError, ResumeMismatch, RunExists, TrainError
from cuarl.run import Run, find_run, list_runs
from cuarl.run import facts as facts_module
from cuarl.run.lookup import slug
from cuarl.run.manifest import Code, Machine, read_manifest
from cuarl.run.owner import process_start

CANARY = "canary-77aa21"


@pytest.fixture(autouse=True)
def quick_facts(monkeypatch):
    """Facts that start no process."""
    monkeypatch.setattr(facts_module, "code", lambda: Code(version="1", commit="abc", dirty=False))
    monkeypatch.setattr(facts_module, "machine", lambda: Machine(python="3", platform="x", cpus=1))


@pytest.fixture
def clock():
    start = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    ticks = iter(range(10_000))
    return lambda: start + timedelta(seconds=next(ticks))


@pytest.fixture
def create(tmp_path, clock):
    def create(name=None, **arguments):
        resolved = arguments.pop("resolved", None) or resolve(flags={"tasks": ["settings"]})
        return Run.create(tmp_path / "runs", resolved, name=name, clock=clock, **arguments)

    return create


def test_generated_names_say_suite_model_and_time(create):
    name = create(resolved=resolve(flags={"tasks": ["My Suite"], "model_name": "Qwen/Qwen3-VL-2B"})).name
    assert re.fullmatch(r"my-suite--qwen3-vl-2b--20260102-0304-[0-9a-f]{4}", name)
    assert create(resolved=resolve()).name.startswith("all--tiny--")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Qwen/Qwen3-VL-2B", "qwen3-vl-2b"),
        ("a b/", "a-b"),
        ("x/My.tasks.jsonl", "my.tasks"),
        ('{"x": 1}', "x-1"),
        ("..", ""),
        ("é", ""),
    ],
)
def test_slugs_are_plain_file_names(text, expected):
    assert slug(text) == expected


def test_a_new_run_holds_what_is_needed_to_repeat_it(create, tmp_path):
    source = tmp_path / "mine.yaml"
    source.write_text("# mine\nseed: 7\n")
    resolved = resolve(files=[source], flags={"group_size": 4})
    run = create("a", resolved=resolved)
    assert (run.path / "config.source" / "01-mine.yaml").read_bytes() == source.read_bytes()
    assert resolve(files=[run.config_path]).config.digest == resolved.config.digest == run.manifest.config_digest
    assert (run.manifest.seed, run.manifest.model_name, run.manifest.status) == (7, "tiny", "created")


def test_a_taken_name_is_refused_with_three_choices(create):
    create("a").count({"episodes": 340})
    with pytest.raises(RunExists, match="already has 340 episodes") as caught:
        create("a")
    assert all(choice in caught.value.hint for choice in ("--resume", "--name", "--overwrite"))


@pytest.mark.parametrize(
    "name",
    ["..", "a/b", "latest", "-x", "a\\b", "a\x1b[2Jb", "a\x07", "a\nb", "a\tb", "a\x00b", "a\x9bb", "a\u202eb",
        "a\u200bb",
     "\ufeffa", "a\ud800", " a", "a ", "x" * 201, "é" * 101],
)  # fmt: skip
def test_names_that_are_paths_or_words_are_refused(create, name):
    with pytest.raises(ConfigError, match="is no name for a run"):
        create(name)


def test_overwrite_replaces_a_run_and_nothing_else(create, tmp_path):
    old = create("a")
    (old.path / "metrics.jsonl").write_text("{}")
    forgotten = []
    assert not create("a", overwrite=True, forget=forgotten.append).metrics_path.exists()
    assert forgotten == [old.run_id]
    (tmp_path / "runs" / "precious").mkdir()
    with pytest.raises(RunExists, match="only a run"):
        create("precious", overwrite=True)
    assert (tmp_path / "runs" / "precious").is_dir()


def test_a_folder_that_is_no_run_is_refused(create, tmp_path):
    (tmp_path / "runs" / "a").mkdir(parents=True)
    with pytest.raises(RunExists, match="is not a run"):
        create("a")


def test_success_is_written_down(create):
    with create("a", command=["cuarl", "train"]) as run:
        assert read_manifest(run.path).status == run.status == "running"
    manifest = read_manifest(run.path)
    assert (manifest.status, manifest.exit_code) == ("success", 0)
    assert manifest.attempts[0].command == ("cuarl", "train")
    assert manifest.ended_at == manifest.attempts[0].ended_at == "2026-01-02T03:04:02.000+00:00"


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (TrainError("no gradient"), "failed", 1),
        (ValueError("odd"), "failed", 1),
        (ConfigError("late"), "failed", 2),
        (BarMissed("below"), "success", 3),
        (KeyboardInterrupt(), "cancelled", 130),
        (SystemExit(0), "success", 0),
    ],
    ids=repr,
)
def test_every_ending_is_written_down(create, error, status, code):
    run = create("a")
    with pytest.raises(type(error)), run:
        raise error
    manifest = read_manifest(run.path)
    assert (manifest.status, manifest.exit_code) == (status, code)
    assert manifest.attempts[0].status == status


def test_a_failure_leaves_its_traceback_in_the_log_and_points_there(create):
    run = create("a")
    with pytest.raises(CuarlError) as caught, run:
        raise TrainError("no gradient")
    assert caught.value.__notes__ == [f"log: {run.log_path}"]
    assert "Traceback" in run.log_path.read_text()
    assert (run.path / "logs" / "latest" / "cuarl.log").samefile(run.log_path)
    assert read_manifest(run.path).attempts[0].error == "no gradient"


def test_secrets_reach_no_file(create, monkeypatch):
    monkeypatch.setattr(safe_text, "_secrets", set())
    safe_text.remember([CANARY])
    run = create("a", command=["cuarl", "train", "--db", f"postgresql://u:{CANARY}@h/d"])
    with pytest.raises(ValueError), run:
        logging.getLogger("cuarl.test").error("refused %s", CANARY)
        raise ValueError(f"bad key {CANARY}")
    texts = [path.read_text() for path in run.path.rglob("*") if path.is_file()]
    assert texts and not any(CANARY in text for text in texts)
    assert "***21" in run.log_path.read_text()


def test_a_run_in_use_is_refused_by_process_and_host(create):
    with create("a") as run, pytest.raises(RunExists, match="is in use by process"):
        Run(run.path).__enter__()


def test_a_run_that_stopped_without_a_word_was_killed(create):
    run = create("a")
    run.__enter__()
    assert Run(run.path).status == "running"
    run._lock.release()  # as the operating system does for a killed process
    run._stop_log()
    process = subprocess.Popen(["true"])
    process.wait()
    attempt = run.manifest.attempts[0]
    run.update(attempts=[attempt.model_copy(update={"owner": attempt.owner.model_copy(update={"pid": process.pid})})])
    assert Run(run.path).status == "killed"
    with Run(run.path) as again:
        assert [attempt.status for attempt in again.manifest.attempts] == ["killed", "running"]
        assert again.log_path.parent.name == "attempt-002"


def test_a_process_id_that_was_given_to_another_process_is_not_a_running_run(create):
    run = create("a")
    with run:
        owner = run.manifest.attempts[0].owner
        others = owner.model_copy(update={"pid": os.getppid(), "started": process_start(os.getppid())})
        for started, status in ((others.started, "running"), ("1", "killed")):
            changed = others.model_copy(update={"started": started})
            run.update(attempts=[run.manifest.attempts[0].model_copy(update={"owner": changed})])
            assert Run(run.path).status == status
    other_host = others.model_copy(update={"host": "elsewhere", "started": "1"})
    run.update(status="running", attempts=[run.manifest.attempts[0].model_copy(update={"owner": other_host})])
    assert Run(run.path).status == "running", "what another machine does can't be seen from here"


def test_a_killed_run_is_closed_by_whoever_finds_it_but_never_a_living_one(create):
    run = create("a")
    with run:
        run.close_killed()
        owner = run.manifest.attempts[0].owner.model_copy(update={"started": "1"})
        run.update(attempts=[run.manifest.attempts[0].model_copy(update={"owner": owner})])
        Run(run.path).close_killed()
        assert read_manifest(run.path).status == "running", "its lock is held"
        killed = run.manifest
    run.update(**killed.model_dump())
    Run(run.path).close_killed()
    manifest = read_manifest(run.path)
    assert (manifest.status, manifest.attempts[-1].status) == ("killed", "killed")


def test_resuming_permits_only_what_decides_nothing(create, clock):
    old = resolve(flags={"tasks": ["settings"]})
    path = create("a", resolved=old).path
    new = resolve(files=[path / "config.json"], flags={"max_steps": 99, "save_every": 1})
    run = Run.reopen(path, new, clock=clock)
    assert run.manifest.config_digest == new.config.digest
    assert json.loads(run.config_path.read_text())["max_steps"] == 99
    assert not (path / "config.source").exists()
    other = resolve(files=[path / "config.json"], flags={"group_size": 4, "max_steps": 5})
    with pytest.raises(ResumeMismatch, match="group_size: 16 in the run, 4 now") as caught:
        Run.reopen(path, other)
    assert "max_steps" not in caught.value.what
    assert json.loads(run.config_path.read_text())["max_steps"] == 99


def test_runs_are_found_by_name_path_prefix_and_latest(create, tmp_path):
    runs = tmp_path / "runs"
    first, second = create("alpha-1"), create("beta-1")
    assert find_run(runs, "alpha-1") == find_run(runs, "al") == find_run(runs, str(first.path)) == first.path
    assert find_run(runs) == second.path
    with first:
        assert find_run(runs) == first.path
    assert [path.name for path, _ in list_runs(runs)] == ["beta-1", "alpha-1"]


def test_a_reference_that_is_not_one_run_lists_the_candidates(create, tmp_path):
    runs = tmp_path / "runs"
    with pytest.raises(ConfigError, match="no runs yet"):
        find_run(runs)
    create("alpha-1"), create("alpha-2")
    with pytest.raises(ConfigError, match="means 2 runs: alpha-1, alpha-2"):
        find_run(runs, "alpha")
    with pytest.raises(ConfigError, match='did you mean "alpha-2"'):
        find_run(runs, "alpa-2")


@pytest.mark.parametrize("broken", [b"", b"{", b"[]", b"\xff\xfe", b'{"name": 1}'], ids=repr)
def test_a_broken_manifest_stops_no_other_run_from_being_found(create, tmp_path, broken, caplog):
    runs = tmp_path / "runs"
    fine, bad = create("alpha-1"), create("beta-1")
    (bad.path / "manifest.json").write_bytes(broken)
    assert find_run(runs) == find_run(runs, "al") == fine.path
    assert str(bad.path) in caplog.text
    assert find_run(runs, "be") == bad.path
    with pytest.raises(CuarlError, match="can't read the run's manifest"):
        Run(bad.path)


def test_a_broken_manifest_is_named(create):
    run = create("a")
    (run.path / "manifest.json").write_text("{")
    with pytest.raises(CuarlError, match="can't read the run's manifest"):
        Run(run.path)


def test_manifests_are_never_seen_half_written(create, monkeypatch):
    run = create("a")
    before = (run.path / "manifest.json").read_bytes()
    monkeypatch.setattr("os.fsync", lambda descriptor: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError):
        run.update(status="running")
    assert (run.path / "manifest.json").read_bytes() == before
    assert [path.name for path in run.path.iterdir() if path.name.startswith(".manifest")] == []
