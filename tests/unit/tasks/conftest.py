"""A small world of suites: one to train on, one to evaluate on, one for neither."""

from __future__ import annotations

from pathlib import Path

import pytest

TRAIN = """\
tasks:
- id: toy_01_open_settings
  description: Open the Settings app
  difficulty: easy
  category: app
  max_steps: 5
  validation_query: current_app
  expected_result: com.android.settings
- id: toy_02_enable_wifi
  description: Turn Wi-Fi on
  difficulty: easy
  category: settings
  tags: [wifi, toggle]
  preset: {network.wifi.enabled: false}
  validation_query: wifi_enabled
  expected_result: true
- id: toy_03_brightness
  description: Set the brightness to {level}
  difficulty: medium
  category: settings
  params: {level: [10, 200]}
  tags: [slider]
  validation_query: brightness_level
  expected_result: "{level}"
- id: toy_04_home
  description: Go to the home screen
  difficulty: easy
  category: navigation
  validation_query: is_home_screen
  expected_result: true
"""
EVAL = """\
- id: held_01_dnd
  description: Turn Do Not Disturb on
  category: settings
  difficulty: medium
  validation_query: dnd_enabled
  expected_result: true
- id: held_02_saver
  description: Turn the battery saver on
  category: settings
  difficulty: easy
  validation_query: battery_saver_enabled
  expected_result: true
"""
OTHER = (
    '[{"id": "toy_files", "description": "List the files", "category": "app", "checks": [{"path": "answer", '
    '"op": "icontains", "value": "a.txt"}]}]'
)


def write_suite(parent: Path, name: str, about: str, tasks: str, file: str = "tasks.yaml") -> Path:
    folder = parent / name
    folder.mkdir()
    (folder / "suite.yaml").write_text(about)
    (folder / file).write_text(tasks)
    return folder


@pytest.fixture
def suites(tmp_path: Path) -> Path:
    """A folder with the suites toy-basics (train), toy-held-out (eval) and toy-shell (other)."""
    parent = tmp_path / "suites"
    parent.mkdir()
    write_suite(parent, "toy-basics", "role: train\naliases: [demo_training]\n", TRAIN)
    write_suite(parent, "toy-held-out", "role: eval\naliases: [demo_eval]\n", EVAL)
    write_suite(parent, "toy-shell", "env: container\n", OTHER, "tasks.json")
    return parent
