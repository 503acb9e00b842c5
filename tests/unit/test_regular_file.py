"""Nothing but a regular file is opened, and nobody is waited for."""

import os
import socket
from pathlib import Path

import pytest

from cuarl.cli.app import run
from cuarl.regular_file import open_regular, read_regular
from tests.unit.cli.conftest import bare_terminal

__all__ = ["bare_terminal"]


def fifo(path):
    os.mkfifo(path)


def unix_socket(path):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def device(path):
    path.symlink_to("/dev/zero")


def folder(path):
    path.mkdir()


def link_to_fifo(path):
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to("pipe")


KINDS = {fifo: "named pipe", unix_socket: "socket", device: "device", folder: "folder", link_to_fifo: "named pipe"}


@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_other_kinds_are_refused_at_once(tmp_path, make):
    path = tmp_path / "x"
    make(path)
    with pytest.raises(OSError, match=KINDS[make]):
        read_regular(path)


@pytest.mark.parametrize("command", ["tasks", "validate", "config", "rollout"])
@pytest.mark.parametrize("make", [fifo, unix_socket, device, link_to_fifo], ids=lambda make: make.__name__)
def test_a_special_file_in_the_place_of_tasks_or_a_configuration_is_a_usage_error(tmp_path, capsys, make, command):
    make(tmp_path / "x.yaml")
    arguments = {
        "tasks": ["tasks", "list", "--tasks", "x.yaml"], "validate": ["tasks", "validate", "x.yaml"],
        "config": ["config", "show", "-c", "x.yaml"], "rollout": ["rollout", "--agent", "oracle", "--tasks", "x.yaml"],
    }  # fmt: skip
    assert run(arguments[command]) == 2
    err = capsys.readouterr().err
    assert KINDS[make] in err and "x.yaml" in err


def test_a_file_larger_than_the_limit_is_refused(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(bytes(11))
    assert read_regular(path, limit=11) == bytes(11)
    with pytest.raises(OSError, match="larger than"):
        read_regular(path, limit=10)


def test_a_huge_file_of_tasks_is_not_read(tmp_path, capsys):
    with Path("huge.json").open("wb") as file:
        file.truncate(1 << 40)  # a terabyte that takes no room
    assert run(["tasks", "list", "--tasks", "huge.json"]) == 2
    assert "larger than 64 MiB" in capsys.readouterr().err


def test_links_lead_where_they_lead_unless_they_must_not(tmp_path):
    (tmp_path / "x").write_bytes(b"x")
    (tmp_path / "link").symlink_to("x")
    assert read_regular(tmp_path / "link") == b"x"
    with pytest.raises(OSError, match="a link"):
        open_regular(tmp_path / "link", follow=False)
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "none")


def test_results_of_an_evaluation_are_read_from_a_file_alone(tmp_path, capsys):
    fifo(tmp_path / "results.json")
    assert run(["eval", "--compare", "results.json", "results.json"]) == 2
    assert "named pipe" in capsys.readouterr().err
