"""Pushing to a hub, with huggingface_hub as it is and a hub of our own, which its endpoint leads to."""

import os
import subprocess
import sys

import pytest

from cuarl.errors import ConfigError, MissingSecret
from cuarl.workflow.exporting import Choice
from tests.fakes.hub import Hub, serving

PUSH = """
import sys
from pathlib import Path
from cuarl.errors import CuarlError
from cuarl.workflow.hub import push
try:
    print(push(Path(sys.argv[1]), "ann/phones", public=sys.argv[2] == "public"))
except CuarlError as error:
    print(error)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "out" / "turns").mkdir(parents=True)
    (tmp_path / "out" / "README.md").write_text("# card\n")
    (tmp_path / "out" / "turns" / "train-00000.parquet").write_bytes(b"PAR1\x00\xff")
    return tmp_path / "out"


def push(hub, folder, tmp_path, *, token="hf_ok", public=False):
    """In a process of its own: the library reads its endpoint when it is imported."""
    environment = {
        **os.environ,
        "HF_ENDPOINT": hub.url,
        "HF_TOKEN": token,
        "HF_HOME": str(tmp_path / "hf"),
        "NO_PROXY": "127.0.0.1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
    environment.pop("HF_HUB_OFFLINE", None)
    command = [sys.executable, "-c", PUSH, str(folder), "public" if public else "private"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True).stdout


def test_a_folder_becomes_a_private_data_set_and_pushes_replace_each_other(folder, tmp_path):
    with serving(Hub()) as hub:
        assert push(hub, folder, tmp_path) == f"{hub.url}/datasets/ann/phones\n"
        assert hub.cards == ["# card\n"]
        asked = hub.made["ann/phones"]
        assert asked["type"] == "dataset" and (asked.get("private") is True or asked.get("visibility") == "private")
        assert hub.files["ann/phones"] == {"README.md": b"# card\n", "turns/train-00000.parquet": b"PAR1\x00\xff"}
        (folder / "turns" / "train-00000.parquet").rename(folder / "turns" / "eval-00000.parquet")
        push(hub, folder, tmp_path)
        assert set(hub.files["ann/phones"]) == {"README.md", "turns/eval-00000.parquet"}


@pytest.mark.parametrize("refused", ["token", "room"])
def test_what_a_hub_refuses_is_told_with_the_command_that_tries_again(folder, tmp_path, refused):
    with serving(Hub()) as hub:
        hub.refuse_commits = refused == "room"
        said = push(hub, folder, tmp_path, token="hf_ok" if refused == "room" else "hf_other")
    assert "the hub didn't take the data set" in said
    assert f"fix: hf upload ann/phones {folder} --repo-type dataset" in said
    assert "hf_o" not in said


def test_a_wrong_name_or_no_token_is_told_before_anything_is_exported(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.delenv("HUGGING_FACE_HUB_TOKEN", raising=False)
    with pytest.raises(ConfigError, match="is no name of a data set"):
        Choice(format="dataset", hub="a/b/c").check()
    with pytest.raises(MissingSecret) as caught:
        Choice(format="dataset", hub="ann/phones").check()
    assert caught.value.hint.startswith("export HF_TOKEN=")


@pytest.mark.parametrize(
    ("choice", "what"),
    [
        ({"redact": "m:f", "images": False}, "--redact has no effect with --no-images"),
        ({"images": False, "format": "trl"}, "--no-images has no effect with --format trl"),
        ({"failed": True}, "--failed has no effect with --format backup"),
        ({"renderer": "qwen3-vl", "format": "dataset"}, "--renderer-name has no effect with --format dataset"),
        ({"hub": "a/b"}, "--push-to-hub has no effect with --format backup"),
        ({"public": True, "format": "trl"}, "--public has no effect with no --push-to-hub"),
        ({"renderer": "qwen3vl", "format": "trl"}, 'did you mean "qwen3-vl"'),
    ],
)
def test_what_has_no_effect_is_an_error(choice, what):
    with pytest.raises(ConfigError, match=what):
        Choice(**choice).check()
