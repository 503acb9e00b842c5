"""Tasks that allow more turns than an episode may have are told, where there are many."""

import json

from cuarl.config.load import resolve
from cuarl.settings import Settings
from cuarl.workflow.episodes import select_tasks


def told(tmp_path, steps, **changes):
    file = tmp_path / "tasks.json"
    tasks = [
        {
            "id": f"t{i}",
            "description": f"Wait {i}.",
            "max_steps": n,
            "checks": [{"path": "network.wifi.enabled", "value": True}],
        }
        for i, n in enumerate(steps)
    ]
    file.write_text(json.dumps({"tasks": tasks}))
    config = resolve(flags={"tasks": [str(file)], **changes}).config
    said = []
    select_tasks(config, Settings(), "train", said.append)
    return said


def test_a_tenth_of_the_tasks_is_told_and_fewer_are_not(tmp_path):
    assert told(tmp_path, [24, 30, *[20] * 18]) == [
        "2 of 20 tasks allow more than 20 turns, and end there: --max-turns 30"
    ]
    assert told(tmp_path, [30, *[20] * 18]) == []
    assert told(tmp_path, [24, 30], max_turns=30) == []
