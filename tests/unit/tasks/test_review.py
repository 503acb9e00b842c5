from __future__ import annotations

from typing import Any

from cuarl.tasks.files import Located
from cuarl.tasks.review import Finding, Judged, review
from cuarl.tasks.suites import Role
from cuarl.tasks.task import Task


def judged(task_id: str, goal: str, role: Role | None = "train", **fields: Any) -> Judged:
    fields.setdefault("checks", [{"path": f"x.{task_id}", "value": True}])
    task = Task.model_validate({"id": task_id, "description": goal, **fields})
    return Judged(Located(task, f"{role}.yaml", 1), role)


WIFI = [{"path": "network.wifi.enabled", "value": True}]


def test_sound_tasks_have_no_findings() -> None:
    assert review([judged("a", "Turn Wi-Fi on"), judged("b", "Turn NFC on", "eval"), judged("c", "x", None)]) == []


def test_an_evaluation_goal_that_is_trained_is_an_error_whatever_its_spelling() -> None:
    params = {"thing": ["NFC", "Wi-Fi"]}
    findings = review([judged("a", "Turn {thing} on", params=params), judged("b", "turn WiFi on.", "eval")])
    assert findings == [Finding("error", "b", "eval.yaml, line 1", "the training task a has the same goal")]


def test_an_evaluation_goal_with_the_checks_of_a_trained_one_is_a_warning() -> None:
    findings = review([judged("a", "Turn Wi-Fi on", checks=WIFI), judged("b", "Join the network", "eval", checks=WIFI)])
    assert findings == [Finding("warning", "b", "eval.yaml, line 1", "the training task a has the same checks")]


def test_goals_are_compared_between_training_and_evaluation_only() -> None:
    assert review([judged("a", "Go"), judged("b", "Go", "other"), judged("c", "Go", None), judged("d", "Go")]) == []


def test_a_task_that_starts_solved_is_an_error() -> None:
    preset = {"network.wifi.enabled": True}
    (finding,) = review([judged("a", "Turn Wi-Fi on", checks=WIFI, preset=preset)])
    assert finding.text == "its preset already fulfils all its checks"
    assert review([judged("a", "Turn Wi-Fi on", checks=WIFI, preset={"network.wifi.enabled": False})]) == []


def test_a_task_without_checks_is_an_error() -> None:
    (finding,) = review([judged("a", "Go", checks=[])])
    assert (finding.level, finding.text) == ("error", "it has no checks, so it can't be scored")
