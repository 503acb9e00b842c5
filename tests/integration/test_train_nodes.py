"""``cuarl train --nodes``: machines with disks of their own, here as folders, that meet by loopback."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
import torch
from safetensors.torch import load_file

from tests.integration.rollout_place import Place
from tests.integration.test_train_cli import LUCK, lines, measured, wait_until

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]
ROOT = Path(__file__).parents[2]
LONG = ["--max-steps", "500", "--save-every", "0", "--eval-every", "0"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def machines(tmp_path, capsys):
    """Two folders, each as a machine has it."""
    found = [tmp_path / name for name in ("first", "second")]
    for folder in found:
        folder.mkdir()
        Place(folder, capsys)
        (folder / "luck.py").write_text(LUCK)
    return found


@pytest.fixture(scope="module")
def small():
    """A run of three small steps; a large epsilon, or AdamW turns rounding of tiny gradients into steps."""
    return [
        "--tasks",
        "tasks.json",
        "--eval-tasks",
        "tasks.json",
        "--device",
        "cpu",
        "--reward",
        "luck:luck",
        "--group-size",
        "3",
        "--groups-per-batch",
        "2",
        "--max-turns",
        "2",
        "--max-tokens",
        "6",
        "--max-steps",
        "3",
        "--save-every",
        "1",
        "--eval-every",
        "0",
        "--eval-episodes",
        "2",
        "--skip-baseline",
        "--learning-rate",
        "1e-2",
        "--adam-eps",
        "1e-3",
    ]


def cuarl(folder, *args, prefix=(), **environment):
    settings = {"PYTHONPATH": f"{ROOT}:{folder}", "OMP_NUM_THREADS": "1", "HOME": str(folder), **environment}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("CUARL_", "POSTGRES_"))}
    return subprocess.Popen(
        [*prefix, sys.executable, "-m", "cuarl", "train", *args],
        cwd=folder,
        env={**kept, **settings},
        text=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def joined(rank, port, *, nodes=2, host="127.0.0.1"):
    return ["--nodes", str(nodes), "--node-rank", str(rank), "--rendezvous", f"{host}:{port}"]


@contextmanager
def both(machines, args, second=None, **environment):
    """The processes of two nodes; whatever is left of them is killed in the end."""
    port, second = free_port(), args if second is None else second
    given = (args, second)
    nodes = [cuarl(folder, *given[i], *joined(i, port), **environment) for i, folder in enumerate(machines)]
    try:
        yield nodes
    finally:
        for node in nodes:
            for process in [*(psutil.Process(node.pid).children(recursive=True) if node.poll() is None else []), node]:
                process.kill()
            if not node.stderr.closed:
                node.communicate()


def over(process, timeout=600):
    """Exit code and standard error."""
    _, err = process.communicate(timeout=timeout)
    assert "Traceback" not in err, err
    return process.returncode, err


def weights(folder, step=3):
    return load_file(folder / "runs" / "run" / "checkpoints" / f"step-{step:06d}" / "adapter_model.safetensors")


def ranks_of(process):
    found = []
    for child in psutil.Process(process.pid).children(recursive=True):
        if "RANK" in child.environ():
            found.append(child)
    return found


def test_two_nodes_equal_one_process_and_go_on_after_a_kill_without_a_shared_disk(machines, small, tmp_path, capsys):
    one = tmp_path / "one"
    shutil.copytree(machines[0], one)
    alone = cuarl(one, *small, "--name", "run")
    with both(machines, [*small, "--name", "run", "--max-steps", "2"], second=[]) as (first, second):
        run = machines[0] / "runs" / "run"
        wait_until(lambda: (run / "checkpoints" / "latest").exists(), first)
        for process in (first, second):
            for child in psutil.Process(process.pid).children(recursive=True):
                child.kill()
            process.kill()
            process.communicate()
    assert not (machines[1] / "runs" / "run").exists() and not (machines[1] / "runs" / "cuarl.db").exists()
    with both(machines, ["--resume", "run", "--max-steps", "3"]) as (first, second):
        assert [over(process)[0] for process in (first, second)] == [0, 0]
    assert list((machines[1] / "runs").iterdir()) == []
    assert over(alone)[0] == 0
    expected, found = weights(one), weights(machines[0])
    assert all(torch.allclose(expected[name], found[name], atol=1e-5) for name in expected)
    assert [row["step"] for row in measured(run)] == [1, 2, 3]
    with Place(machines[0], capsys).store() as store:
        assert len(store.episodes(purpose="train")) == 18


@pytest.mark.parametrize(
    ("victim", "named", "codes"),
    [
        pytest.param("rank", "process 1 of the run, on node 1 (", (1, 1), id="a process"),
        pytest.param("node", "node 1 (", (1, None), id="a whole machine"),
        pytest.param("main", "node 0 (", (None, 1), id="the machine of node 0"),
        pytest.param("launcher", "the launcher of node 1 (", (130, 130), id="a launcher"),
    ],
)
def test_whatever_is_lost_ends_the_others_within_a_minute_and_is_named(machines, small, victim, named, codes):
    with both(machines, [*small, *LONG, "--name", "run"]) as nodes:
        metrics = machines[0] / "runs" / "run" / "metrics.jsonl"
        wait_until(lambda: len(lines(metrics)) >= 2, nodes[0])
        lost = nodes[0 if victim == "main" else 1]
        ranks = ranks_of(lost)
        assert len(ranks) == 1
        launcher = ranks[0].parent()
        killed = {"rank": ranks, "launcher": [launcher]}.get(victim, [lost, launcher, *ranks])
        for process in killed:  # at the same moment, as a machine loses its power
            process.send_signal(signal.SIGSTOP)
        for process in killed:
            process.kill()
        began = time.monotonic()
        for process, code in zip(nodes, codes, strict=True):
            if code is not None:
                found, err = over(process, timeout=90)
                assert (found, named in err or process is lost) == (code, True), err
                told = [line for line in err.splitlines() if line.startswith("error:")]
                assert len(told) == (0 if code == 130 else 1), err
        assert time.monotonic() - began < 60
    if victim != "main":
        assert (machines[0] / "runs" / "run" / "checkpoints" / "latest").exists(), "what was learnt is saved"
        manifest = json.loads((machines[0] / "runs" / "run" / "manifest.json").read_text())
        assert manifest["status"] == ("cancelled" if victim == "launcher" else "failed")


def test_nodes_that_do_not_do_the_same_end_with_the_difference(machines, small):
    with both(machines, [*small, "--name", "run"], second=[*small, "--lora-rank", "4"]) as (first, second):
        code, err = over(second)
        assert (code, "lora_rank: 16 on node 0, 4 here" in err) == (2, True), err
        code, err = over(first, timeout=90)
        assert (code, "node 1 (" in err and "another configuration" in err) == (1, True), err


def test_an_end_that_one_node_is_told_is_everybodys(machines, small):
    with both(machines, [*small, *LONG, "--name", "run"]) as (first, second):
        metrics = machines[0] / "runs" / "run" / "metrics.jsonl"
        wait_until(lambda: len(lines(metrics)) >= 1, first)
        second.send_signal(signal.SIGTERM)
        code, err = over(first)
        assert (code, "training was ended from node 1" in err) == (130, True), err
        assert "resume with: cuarl train --resume run" in err
        assert over(second)[0] == 130


@pytest.mark.parametrize("listens", [False, True], ids=["nobody listens", "somebody else listens"])
def test_a_wrong_address_is_an_error_within_the_time_that_is_set(machines, small, listens):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1] if listens else free_port()
        began = time.monotonic()
        node = cuarl(machines[1], *small, *joined(1, port), CUARL_RENDEZVOUS_SECONDS="2")
        code, err = over(node, timeout=90)
    said = "no node 0 of a training" if listens else "was not reached within 2 s: connection refused"
    assert (code, said in err, time.monotonic() - began < 60) == (4, True, True), err


def test_a_node_that_does_not_come_is_named(machines, small):
    node = cuarl(machines[0], *small, "--name", "run", *joined(0, free_port()), CUARL_RENDEZVOUS_SECONDS="8")
    code, err = over(node, timeout=120)
    assert (code, "error: node 1 did not come to 127.0.0.1" in err) == (1, True), err
