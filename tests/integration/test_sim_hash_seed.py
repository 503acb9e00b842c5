"""Python salts the hashes of text per process; nothing that the simulator shows may depend on that."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import itertools

import anyio
from cuarl.env.sim.devices import make_sim
from cuarl.tasks.task import Check, TaskInstance

async def main():
    goals = (("phone", "sound.touch_sounds"), ("desktop", "sound.system_sounds"))
    for seed, (kind, path) in itertools.product(range(4), goals):
        env = make_sim(kind, clutter=0.5)
        task = TaskInstance(task_id="t", goal="g", checks=(Check(path=path, value=False),))
        print((await env.reset(task, seed)).screenshot.digest)
        while (action := env.oracle_action()).kind != "finish":
            print((await env.step(action)).observation.screenshot.digest, action)
        print(await env.state())

anyio.run(main)
"""


@pytest.mark.integration
def test_pixels_states_and_oracle_are_the_same_whatever_the_hash_seed():
    outputs = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("0", "1")
    ]
    assert outputs[0] == outputs[1] and outputs[0].count(b"\n") > 20
