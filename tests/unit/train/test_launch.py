import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from cuarl.errors import ConfigError
from cuarl.train.launch import PRESETS, check_launched, launch_command


def configuration(command):
    return Path(command[command.index("--config_file") + 1])


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_a_configuration_file_in_the_package(preset):
    path = configuration(launch_command([], processes=2, accelerate=preset))
    assert yaml.safe_load(path.read_text())["num_machines"] == 1


def test_arguments_pass_through_unchanged_whatever_is_in_them():
    arguments = ["train", "--tasks", "a b; rm -rf '$HOME'", "-s", 'x="y"']
    command = launch_command(arguments, processes=3)
    assert command[0] == sys.executable
    assert command[command.index("--num_processes") + 1] == "3"
    assert command[command.index("cuarl") - 1 :] == ["-m", "cuarl", *arguments]


def test_a_file_of_ones_own_is_taken(tmp_path):
    (tmp_path / "mine.yaml").write_text("num_machines: 2")
    assert configuration(launch_command([], processes=2, accelerate=str(tmp_path / "mine.yaml"))).name == "mine.yaml"


def test_an_unknown_preset_is_refused_with_a_suggestion():
    with pytest.raises(ConfigError, match='did you mean "ddp"'):
        launch_command([], processes=2, accelerate="dpp")


@pytest.mark.parametrize(
    ("environment", "refused"),
    [
        pytest.param({}, False, id="no launcher"),
        pytest.param({"ACCELERATE_MIXED_PRECISION": "no"}, False, id="one process asked for"),
        pytest.param({"ACCELERATE_MIXED_PRECISION": "no", "MASTER_PORT": "29500"}, True, id="several asked for"),
        pytest.param(
            {"ACCELERATE_MIXED_PRECISION": "no", "MASTER_PORT": "1", "WORLD_SIZE": "2"}, False, id="several started"
        ),
    ],
)
def test_a_launcher_that_started_too_few_processes_is_noticed(environment, refused):
    if not refused:
        check_launched(environment)
        return
    with pytest.raises(ConfigError, match="started only one"):
        check_launched(environment)


def test_launching_needs_no_torch():
    code = "import sys, cuarl.train.launch; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
