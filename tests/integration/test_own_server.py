"""``policy: vllm`` with an interpreter that starts ``cuarl serve`` in vLLM's place: it is started, used and ended."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import pytest

from tests.integration.rollout_place import Place, bare

pytest.importorskip("uvicorn", reason="the extra web is not installed")
pytestmark = pytest.mark.integration

INTERPRETER = f"""#!/bin/sh
# what vLLM is told becomes what cuarl serve is told
if [ "$1" = -c ]; then echo 0.0; exit 0; fi
echo "$@" > told
model=$4
while [ $# -gt 0 ]; do [ "$1" = --port ] && port=$2; shift; done
exec {sys.executable} -m cuarl serve base --model-name "$model" --port $port --adapters runs --name vllm
"""


def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
        return number


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    bare(monkeypatch, tmp_path)
    (tmp_path / "runs").mkdir()
    script = tmp_path / "python"
    script.write_text(INTERPRETER)
    script.chmod(0o755)
    return Place(tmp_path, capsys)


def train(place: Place, number: int, *words: str) -> object:
    return place.cuarl(
        "train",
        "--tasks",
        "train_02_enable_wifi",
        "--vllm-python",
        str(place.folder / "python"),
        "--vllm-port",
        str(number),
        "--device",
        "cpu",
        "--group-size",
        "2",
        "--groups-per-batch",
        "1",
        "--max-turns",
        "2",
        "--max-steps",
        "2",
        "--skip-baseline",
        "--eval-episodes",
        "1",
        "--keep-adapters",
        "--name",
        "t1",
        *words,
    )


def test_it_is_started_given_each_adapter_and_ended(place: Place) -> None:
    number = port()
    done = train(place, number, "--max-steps-off-policy", "1", "--vllm-args", "--max-model-len 2048")
    assert done.code == 0, done.err
    told = (place.folder / "told").read_text().split()
    assert told[-2:] == ["--max-model-len", "2048"]
    assert "starting vLLM" in done.err
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", number)) != 0, "it still listens"
    found = place.cuarl("rollout", "verify", "t1", "--json")
    assert found.code == 0, found.err
    assert all(v["largest"] < 1e-4 for v in json.loads(found.out))


def test_one_that_does_not_come_up_is_told_by_its_own_words(place: Place) -> None:
    script = place.folder / "python"
    script.write_text(
        "#!/bin/sh\n[ $1 = -c ] && exit 0\ncat <<END\n(EngineCore pid=7) ValueError: 1 fault\n"
        "  no room for the cache\n(APIServer pid=6) RuntimeError: see above\nEND\nexit 1\n"
    )
    done = train(place, port())
    assert done.code == 4
    assert "vLLM ended while it started: (EngineCore pid=7) ValueError: 1 fault no room for the cache" in done.err
    assert "logs/vllm.log" in done.err


def test_an_interpreter_without_vllm_and_a_taken_port_are_told_before_a_run_is_made(place: Place) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refused = train(place, taken.getsockname()[1])
    assert (refused.code, "--vllm-port" in refused.err) == (2, True), refused.err
    (place.folder / "python").write_text("#!/bin/sh\necho \"No module named 'vllm'\" >&2\nexit 1\n")
    refused = train(place, port(), "--dry-run", "--lora-rank", "8")
    assert (refused.code, "can't import vllm" in refused.err) == (4, True), refused.err
    assert not (place.folder / "runs" / "t1").exists()
