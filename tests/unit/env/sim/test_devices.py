"""Kinds of simulated devices are loaded with the tasks that need them."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("kind", ["phone", "desktop"])
def test_a_run_loads_the_devices_of_its_tasks_before_the_first_episode_and_no_others(kind):
    code = (
        "import sys\n"
        "from cuarl.config.schema import ExperimentConfig\n"
        "from cuarl.env.sim.backend import backend\n"
        "from cuarl.settings import Settings\n"
        "from cuarl.tasks.source import load\n"
        "config = ExperimentConfig()\n"
        f"backend(config.env, config, load(['{kind}'], role=None).tasks, Settings())\n"
        "print(*(kind for kind in ('phone', 'desktop') if f'cuarl.sim.{kind}.device' in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [kind]
