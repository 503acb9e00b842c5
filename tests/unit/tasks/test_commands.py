from __future__ import annotations

import json
import re
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

from cuarl.cli.commands.tasks import app
from cuarl.errors import BarMissed, CuarlError, TaskError


class Output(NamedTuple):
    out: str
    err: str
    error: CuarlError | None


@pytest.fixture(autouse=True)
def only_toy_suites(suites: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CUARL_TASKS_DIR", str(suites))
    monkeypatch.setenv("COLUMNS", "")
    monkeypatch.chdir(tmp_path)


def run(*args: str, stdin: str = "") -> Output:
    result = CliRunner().invoke(app, args, input=stdin)
    error = result.exception if isinstance(result.exception, CuarlError) else None
    if result.exception is not None and error is None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Output(result.stdout, result.stderr, error)


TOY = ("--suite", "toy-basics")


def test_the_table_has_whole_ids_and_the_summary_goes_to_stderr() -> None:
    out, err, _ = run("list", *TOY)
    assert out.splitlines()[0].split() == ["id", "suite", "category", "difficulty", "steps"]
    assert out.splitlines()[2].split() == ["toy_02_enable_wifi", "toy-basics", "settings", "easy", "10"]
    assert "4 tasks: navigation 1, settings 2, app 1, easy 3, medium 1" in err
    assert "Turn Wi-Fi on" in run("list", *TOY, "--long").out


def test_json_is_alone_on_stdout_and_selects_the_same_tasks_again(tmp_path: Path) -> None:
    out = run("filter", *TOY, "--json", "--limit", "9").out
    (tmp_path / "again.json").write_text(out)
    assert json.loads(out)[0]["id"] == "toy_01_open_settings"
    assert run("filter", "--tasks", "again.json", "--role", "any", "--json").out == out


def test_ids_go_from_one_command_into_another() -> None:
    ids = run("filter", *TOY, "--difficulty", "easy", "--ids").out
    assert ids.splitlines() == ["toy_01_open_settings", "toy_02_enable_wifi", "toy_04_home"]
    assert run("list", "--tasks", "-", "--category", "settings,app", "--ids", stdin=ids).out.split() == ids.split()[:2]


def test_options_filter_together() -> None:
    assert run("list", *TOY, "--tag", "wifi,slider", "-F", "max_steps=10", "--env", "phone", "--ids").out.split() == [
        "toy_02_enable_wifi",
        "toy_03_brightness",
    ]
    drawn = run("list", *TOY, "--limit", "2", "--seed", "3", "--ids").out
    assert len(drawn.split()) == 2
    assert drawn == run("list", *TOY, "--limit", "2", "--seed", "3", "--ids").out


def test_a_listing_may_be_empty_but_a_selection_may_not() -> None:
    out, _, error = run("list", *TOY, "--difficulty", "hard", "--json")
    assert (json.loads(out), error) == ([], None)
    assert run("list", *TOY, "--difficulty", "hard").err == 'no task: "difficulty hard" leaves none\n'
    refused = run("filter", *TOY, "--difficulty", "hard").error
    assert isinstance(refused, TaskError)
    assert refused.what == 'no task is left: "difficulty hard" leaves none'


def test_a_selection_is_of_training_tasks_unless_another_role_is_asked_for() -> None:
    chosen = ("--tasks", "toy-held-out,toy-basics/*home", "--ids")
    assert "from suites that are not for train: held_01_dnd, held_02_saver" in run("filter", *chosen).err
    assert "from suites that are not for eval: toy_04_home" in run("filter", *chosen, "--role", "eval").err
    assert run("filter", *chosen, "--role", "any").err == ""
    assert "held_01_dnd" not in run("filter", "--tasks", "settings", "--ids").out


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("list", "--suite", "toy-basic"), 'unknown suite "toy-basic" (did you mean "toy-basics"?)'),
        (("list", "--category", "setting"), 'unknown category "setting" (did you mean "settings"?)'),
        (("list", "--tasks", "toy_04_hom"), '"toy_04_hom" (did you mean "toy_04_home"?)'),
        (("list", "-F", "suit=x"), 'tasks have no field "suit" (did you mean "suite"?)'),
        (("show", "toy_04"), '"toy_04" (did you mean "toy_04_home"?)'),
        (("list", "--tasks-dir", "absent"), "the folder of task suites does not exist"),
        (("validate", "absent.yaml"), "the task file can't be read"),
    ],
)  # fmt: skip
def test_a_wrong_name_is_refused_with_a_suggestion(args: tuple[str, ...], words: str) -> None:
    error = run(*args).error
    assert error is not None
    assert words in error.what
    assert error.exit_code == 2


def test_a_task_is_shown_in_full() -> None:
    out = run("show", "toy_03_brightness", "toy_02_enable_wifi", "--seed", "4").out
    assert "  goal        Set the brightness to {level}\n" in out
    assert "  check       display.brightness equals '{level}'\n" in out
    assert "  starts      network.wifi.enabled = False\n" in out
    (shown,) = json.loads(run("show", "toy_03_brightness", "--seed", "4", "--json").out)
    assert f"  at seed 4   {shown['instance']['goal']}\n" in out
    assert shown["instance"]["checks"][0]["value"] in (10, 200)
    assert len(shown["digest"]) == 64


def test_sound_tasks_validate_and_findings_are_listed(tmp_path: Path) -> None:
    out, err, error = run("validate", "toy-basics", "toy-held-out")
    assert (err, error) == ("6 tasks without errors\n", None)
    assert {line.split()[0] for line in out.splitlines()[1:]} <= {"warning"}  # shipped suites may train the same checks
    (tmp_path / "goals.txt").write_text("Open the clock\n")
    out, _, error = run("validate", "goals.txt", "--json")
    report = json.loads(out)
    assert (report["tasks"], [f["level"] for f in report["findings"]]) == (1, ["error"])
    assert isinstance(error, TaskError)
    assert "it has no checks" in run("validate", "goals.txt").out


def test_tasks_are_proven_on_the_simulator_and_others_are_named() -> None:
    out, err, error = run("validate", "toy_02_enable_wifi,toy_files", "--seeds", "2", "--jobs", "1", "--json")
    (proof,) = json.loads(out)["proofs"]
    assert (proof["task_id"], proof["failed"], proof["problems"], error) == ("toy_02_enable_wifi", 0, [], None)
    assert err.splitlines() == [
        "not simulated, so not proven: toy_files",
        "2 tasks without errors, 1 of them proven at 2 seeds",
    ]


def test_a_task_that_is_not_proven_misses_the_bar(tmp_path: Path) -> None:
    (tmp_path / "solved.yaml").write_text(
        "id: solved\ngoal: Go home\nchecks: [{path: ui.is_home_screen, value: true}]\n"
    )
    out, _, error = run("validate", "solved.yaml", "--seeds", "2", "--jobs", "1")
    assert out.splitlines()[1].split(maxsplit=2) == ["solved", "0,1", "solved by doing nothing"]
    assert isinstance(error, BarMissed)
    assert error.what == "not proven: 2 of 2 instances of 1 task"


def test_the_schemas_are_printed() -> None:
    assert json.loads(run("schema").out)["title"] == "cuarl task file"
    assert "role" in json.loads(run("schema", "--suite").out)["properties"]


WRONG_PRESETS = """\
tasks:
- {id: page_key, description: a, env: browser, preset: {urll: "http://h.test/"}, checks: [{path: title, value: x}]}
- {id: page_check, description: b, env: browser, preset: {url: "http://h.test/"}, checks: [{path: titel, value: x}]}
- {id: page_read, description: c, env: browser, preset: {url: "http://h.test/"}, checks: [{path: read.total, value: 1}]}
- {id: page_set, description: d, env: browser, preset: {url: "http://h.test/", set: {a: 1}},
   checks: [{path: title, value: x}]}
- {id: miniwob, description: e, env: browser, preset: {page: click-test, url: "http://h.test/"},
   checks: [{path: x, value: 1}]}
- {id: a_phone, description: f, preset: {network.wifii.enabled: true},
   checks: [{path: network.wifi.enabled, value: false}]}
- {id: phone_start, description: g, preset: {ui.pages: x}, checks: [{path: network.wifi.enabled, value: true}]}
- {id: a_desktop, description: h, env: desktop, preset: {ui.app: [nothing]},
   checks: [{path: appearance.dark_style, value: true}]}
- {id: linux, description: i, env: linux, preset: {files: [{path: a, txt: b}]}, checks: [{path: files.a, value: x}]}
- {id: adb, description: k, env: adb, preset: {sett: up}, checks: [{path: answer, value: x}]}
- {id: gbox, description: l, env: gbox, preset: {reads: {a: nonsense}}, checks: [{path: answer, value: x}]}
- id: one_of_two
  description: "m {page}"
  env: browser
  params: {page: ["http://h.test/", "not an address"]}
  preset: {url: "{page}"}
  checks: [{path: title, value: x}]
- {id: sound, description: n, env: browser, preset: {url: "http://h.test/", read: {total: "1"}},
   checks: [{path: read.total, value: 1}]}
"""


def test_presets_that_no_device_can_be_set_up_by_are_found_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "wrong.yaml").write_text(WRONG_PRESETS)
    out, _, error = run("validate", "wrong.yaml", "--json")
    found = {finding["task_id"]: finding["text"] for finding in json.loads(out)["findings"]}
    said = {
        "page_key": 'urll, which a browser does not have (did you mean "url"?)',
        "page_check": 'titel, which a page\'s state does not have (did you mean "title"?)',
        "page_read": "checks read.total",
        "page_set": "no set_url", "miniwob": "presets url", "a_phone": "network.wifii.enabled",
        "phone_start": "ui.pages",
        "a_desktop": "no app 'nothing'", "linux": "a file has no txt", "adb": "presets sett", "gbox": "nonsense",
        "one_of_two": "not an address",
    }  # fmt: skip
    assert found.keys() == said.keys()
    assert [task for task, text in said.items() if text not in found[task]] == []
    assert isinstance(error, TaskError)


def test_prove_prints_a_row_for_each_task_and_says_what_it_lacks_to_play_one(tmp_path: Path) -> None:
    rows = [
        {"id": "abroad", "description": "a", "env": "pods", "checks": [{"path": "answer", "value": "b"}]},
        {"id": "planned", "description": "b", "env": "pods", "checks": [{"path": "answer", "value": "b"}],
         "plan": [{"click": "a"}]},
    ]  # fmt: skip
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(rows[:1]), encoding="utf-8")
    error = run("validate", str(file), "--prove").error
    assert error is not None and "no Kubernetes cluster is set" in error.what and error.hint
    done = run("validate", "toy_02_enable_wifi", "--prove", "--jobs", "1")
    assert done.error is None
    assert re.search(r"^toy_02_enable_wifi  3/3 +\d", done.out, re.MULTILINE)
    file.write_text(json.dumps(rows), encoding="utf-8")
    refused = run("validate", str(file))
    assert refused.error is not None and "does not tell things by text: name a place by at" in refused.out
    assert "  plan 1      click: a\n" in run("show", str(file)).out
    for words in (["--set", "env.viewport=320x320"], ["--prove", "--seeds", "0"]):
        error = run("validate", "toy_02_enable_wifi", *words).error
        assert error is not None and error.exit_code == 2


def test_generated_tasks_are_a_file_that_every_command_takes(tmp_path: Path) -> None:
    run("generate", "--count", "30", "--seed", "3", "--out", "made.jsonl")
    assert run("generate", "--count", "30", "--seed", "3").out == (tmp_path / "made.jsonl").read_text()
    assert len(run("list", "--tasks", "made.jsonl", "--ids").out.split()) == 30
    held_out = run("filter", "--tasks", "made.jsonl", "--role", "eval", "--json").out
    assert len(json.loads(held_out)) > 2 and "train" not in {task["split"] for task in json.loads(held_out)}
    assert run("filter", "--tasks", "made.jsonl", "--split", "wording", "--ids").out
    assert run("validate", "made.jsonl").error is None
    error = run("generate", "--out", "made.yaml").error
    assert error and error.hint == "--out made.jsonl"
    error = run("generate", "--count", "1", "--out", "nowhere/made.jsonl").error
    assert error and "can't be written" in error.what


def test_goals_too_near_to_evaluation_goals_are_shown_and_refused(tmp_path: Path) -> None:
    (tmp_path / "near.txt").write_text("Turn Do Not Disturb on, now\nSing\n")
    out, _, error = run("nearest", "near.txt", "--bar", "0.9", "--json")
    pairs = json.loads(out)
    assert error is None and [round(pair["similarity"], 2) for pair in pairs] == [0.83, 0]
    assert pairs[0]["evaluation_goal"] == "Turn Do Not Disturb on"
    out, _, error = run("nearest", "near.txt")
    assert isinstance(error, BarMissed) and "similarity 0.83" in error.what and "Turn Do Not Disturb on" in out
