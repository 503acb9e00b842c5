"""Run the commands of docs/guides/seeds.md against local servers of everything that they need.

No account, no GPU, nothing outside.

    python examples/seeds.py               every command, in order, in a temporary folder
    python examples/seeds.py --only 2 7    some of them, by number
    python examples/seeds.py --list        say what they are

The commands are read from the page, so that it can't say anything that does not run.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "guides" / "seeds.md"
KEY = "local-key"
SERVED = "http://localhost:8000/v1"
"""Stands in the page for wherever the local policy server listens."""
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))


def commands(page: str) -> list[list[str]]:
    """The words of each ``$ cuarl …`` of the page, in order; a line that ends in a backslash goes on in the next."""
    found, block = [], False
    lines = iter(page.splitlines())
    for line in lines:
        if line.startswith("```"):
            block = line == "```console"
        elif block and line.startswith("$ cuarl "):
            text = line.removeprefix("$ ")
            while text.endswith("\\"):
                text = f"{text[:-1]} {next(lines).strip()}"
            found.append(shlex.split(text))
    return found


@contextmanager
def servers(*, tinker: bool = True) -> Iterator[dict[str, str]]:
    """All of them on free ports, ``tinker`` being the slow one to start; what a command's environment has to say."""
    from cuarl.local.gbox import FakeGBox
    from cuarl.local.gym import FakeGym
    from cuarl.local.kubernetes import FakeKubernetes
    from cuarl.local.mini_agent import FakeMiniAgent
    from cuarl.local.threads import served

    gym = FakeGym(key=KEY, box_key=KEY)
    # the gym's own devices are boxes of the same account
    boxes = gym.boxes = FakeGBox(KEY)
    with (
        served(gym.app()) as gym_url,
        served(boxes.app()) as box_url,
        served(FakeMiniAgent(key=KEY).app()) as agent_url,
        served(FakeKubernetes(KEY).app()) as cluster_url,
        _tinker() if tinker else nullcontext("") as tinker_url,
    ):
        yield {
            "GYM_BASE_URL": gym_url,
            "GYM_API_KEY": KEY,
            "GBOX_BASE_URL": f"{box_url}/api/v1",
            "GBOX_API_KEY": KEY,
            "GBOX_MINI_AGENT_BASE_URL": agent_url,
            "GBOX_MINI_AGENT_API_KEY": KEY,
            # as in UI-RL, sessions are reached by a proxy of their own
            "KUBE_API_URL": cluster_url,
            "KUBE_TOKEN": KEY,
            "CUARL_PODS_PROXY_URL": cluster_url,
            "TINKER_BASE_URL": tinker_url,
            "TINKER_API_KEY": f"tml-{KEY}",
            "TINKER_TELEMETRY": "0",
        }


@contextmanager
def _tinker() -> Iterator[str]:
    from cuarl.local.tinker import TinkerServer, running
    from cuarl.policy.load import load_policy
    from cuarl.policy.qwen_vl.policy import QwenVLPolicy
    from cuarl.policy.spec import LoraSpec, ModelSpec

    def make(rank: int, seed: int) -> QwenVLPolicy:
        return load_policy(ModelSpec(model="tiny", lora=LoraSpec(rank=rank, seed=seed), train="adapter"))

    with running(TinkerServer(make, chunk_bytes=60_000)) as url:
        yield url


@contextmanager
def policy_server(environment: dict[str, str], folder: Path) -> Iterator[str]:
    """``cuarl serve base`` on a free port; its base URL."""
    (folder / "runs").mkdir(exist_ok=True)
    words = ["cuarl", "serve", "base", "--port", "0", "--adapters", "runs", "--name", "server", "--json"]
    process = subprocess.Popen(
        [sys.executable, "-m", *words], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield str(json.loads(process.stdout.readline())["url"])
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)


def play(chosen: Sequence[tuple[int, list[str]]], folder: Path) -> int:
    """Run them; the number of those that failed."""
    with servers(tinker=any("cua-rl" in words for _, words in chosen)) as variables:
        environment = {**os.environ, **variables, "CUARL_SESSIONS_DIR": str(folder / "sessions"), "COLUMNS": "120"}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        needed = any(SERVED in words for _, words in chosen)
        with policy_server(environment, folder) if needed else nullcontext(SERVED) as url:
            failed = sum(not _succeeds(number, words, url, folder, environment) for number, words in chosen)
    return failed


def _succeeds(number: int, words: Sequence[str], url: str, folder: Path, environment: dict[str, str]) -> bool:
    sys.stdout.write(f"\n[{number}] $ {shlex.join(words)}\n")
    sys.stdout.flush()
    begin = time.monotonic()
    command = [sys.executable, "-m", *(url if word == SERVED else word for word in words)]
    done = subprocess.run(command, cwd=folder, env=environment, check=False)
    sys.stdout.write(f"[{number}] exit code {done.returncode} after {time.monotonic() - begin:.1f} s\n")
    return done.returncode == 0


def main() -> None:
    """Run what was asked for; exits with 1 if a command failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", type=int, nargs="+", metavar="N", help="only these, by number")
    parser.add_argument("--list", action="store_true", help="only say what they are")
    args = parser.parse_args()
    numbered = list(enumerate(commands(PAGE.read_text(encoding="utf-8")), 1))
    chosen = [one for one in numbered if not args.only or one[0] in args.only]
    if args.list:
        for number, words in chosen:
            sys.stdout.write(f"[{number}] {shlex.join(words)}\n")
        return
    with tempfile.TemporaryDirectory(prefix="cuarl-seeds-") as folder:
        (Path(folder) / "examples").symlink_to(ROOT / "examples")
        failed = play(chosen, Path(folder))
    sys.stdout.write(f"\n{len(chosen) - failed} of {len(chosen)} commands succeeded\n")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
