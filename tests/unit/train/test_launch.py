import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from cuarl.errors import ConfigError
from cuarl.train.launch import PRESETS, Launch, check_launched, launch_asked_for, launch_command
from cuarl.train.nodes import Node, parse_place


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
    (tmp_path / "mine.yaml").write_text("num_machines: 1")
    assert configuration(launch_command([], processes=2, accelerate=str(tmp_path / "mine.yaml"))).name == "mine.yaml"


HERE = Node(1, 2, "10.0.0.1", 29500)


def test_nodes_are_passed_to_accelerate_with_all_their_processes():
    command = launch_command([], processes=4, node=HERE, run=Path("runs/mine"), wait_s=300)
    given = dict(pairwise(command))
    assert [given[f"--{name}"] for name in ("num_machines", "machine_rank", "num_processes")] == ["2", "1", "8"]
    assert (given["--main_process_ip"], given["--main_process_port"]) == ("10.0.0.1", "29500")
    assert given["--run"] == "runs/mine"


def test_nodes_are_asked_for_by_options():
    asked = launch_asked_for(processes=4, nodes=2, node_rank=1, rendezvous="10.0.0.1:29500")
    assert asked == Launch(4, "ddp", HERE) and asked.world == 8


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"nodes": 2}, "2 nodes need --node-rank"),
        ({"nodes": 2, "node_rank": 0}, "2 nodes need --rendezvous"),
        ({"nodes": 2, "node_rank": 2, "rendezvous": "a:1"}, "there is no node 2 of 2"),
        ({"nodes": 2, "node_rank": 0, "rendezvous": "a"}, '"a" is no HOST:PORT'),
        ({"nodes": 2, "node_rank": 0, "rendezvous": "a:99999"}, "is no HOST:PORT"),
        ({"node_rank": 1}, "--node-rank has no effect on one machine"),
        ({"rendezvous": "a:1"}, "--rendezvous has no effect on one machine"),
    ],
)
def test_nodes_that_can_not_meet_are_refused(options, says):
    with pytest.raises(ConfigError, match=says):
        launch_asked_for(**options)


def test_an_address_may_be_of_ipv6():
    assert parse_place("[fe80::1]:29500") == ("fe80::1", 29500)
    assert Node(0, 2, "fe80::1", 29500).place == "[fe80::1]:29500"


# what `accelerate config` writes for the second of two machines with four GPUs each
OF_ACCELERATE = """
compute_environment: LOCAL_MACHINE
debug: false
distributed_type: MULTI_GPU
downcast_bf16: 'no'
enable_cpu_affinity: false
gpu_ids: all
machine_rank: 1
main_process_ip: 10.0.0.1
main_process_port: 29500
main_training_function: main
mixed_precision: 'no'
num_machines: 2
num_processes: 8
rdzv_backend: static
same_network: true
tpu_env: []
tpu_use_cluster: false
tpu_use_sudo: false
use_cpu: false
"""


def test_a_file_of_accelerate_says_which_machines_and_options_win(tmp_path):
    file = tmp_path / "two.yaml"
    file.write_text(OF_ACCELERATE)
    assert launch_asked_for(accelerate=str(file)) == Launch(4, str(file), HERE)
    other = launch_asked_for(accelerate=str(file), processes=1, node_rank=0, rendezvous="b:1")
    assert other == Launch(1, str(file), Node(0, 2, "b", 1))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("MULTI_GPU", "DEEPSPEED", "distributed_type DEEPSPEED"),
        ("MULTI_GPU", "MULTI_CPU", "distributed_type MULTI_CPU"),
        ("LOCAL_MACHINE", "AMAZON_SAGEMAKER", "compute_environment"),
        ("mixed_precision: 'no'", "mixed_precision: bf16", "mixed_precision bf16"),
        ("static", "c10d", "rdzv_backend c10d"),
        ("use_cpu: false", "use_cpu: true", "use_cpu True"),
        ("debug: false", "dynamo_config:\n  dynamo_backend: INDUCTOR", "dynamo_config"),
        ("debug: false", "fsdp_config:\n  fsdp_offload_params: true", "fsdp_config.fsdp_offload_params True"),
        ("debug: false", "fsdp_config:\n  fsdp_version: 1", "fsdp_config.fsdp_version 1"),
        ("num_processes: 8", "num_processes: 7", "num_processes 7 can't be shared out"),
        ("num_machines: 2", "num_machines: two", "num_machines 'two' is no number"),
    ],
)
def test_what_a_file_of_accelerate_asks_for_and_cuarl_does_not_do_is_refused_by_name(tmp_path, old, new, says):
    file = tmp_path / "two.yaml"
    assert old in OF_ACCELERATE
    file.write_text(OF_ACCELERATE.replace(old, new))
    with pytest.raises(ConfigError, match=says) as refused:
        launch_asked_for(accelerate=str(file))
    assert "two.yaml" in refused.value.where


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
        pytest.param({"WORLD_SIZE": "2", "GROUP_WORLD_SIZE": "2"}, True, id="machines by another launcher"),
        pytest.param(
            {"WORLD_SIZE": "2", "GROUP_WORLD_SIZE": "2", "CUARL_LOST_PEER": "x"}, False, id="machines by cuarl's"
        ),
    ],
)
def test_a_launcher_that_started_too_few_processes_is_noticed(environment, refused):
    if not refused:
        check_launched(environment)
        return
    with pytest.raises(ConfigError, match=r"started only one|started by another launcher"):
        check_launched(environment)


def test_launching_needs_no_torch():
    code = "import sys, cuarl.train.launch; print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
