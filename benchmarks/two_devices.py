"""A sampler on a device of its own against one device for both: ``python -m benchmarks.two_devices``.

The same training by ``cuarl train``, once for each mode: both jobs on the first device, in turn and asynchronous; the
sampler on the second device, in turn and asynchronous. The model has a real shape (``real_sizes``) and random weights,
so what it says can't be read and the reward is drawn from its tokens: the work is that of a training, what is learnt is
not. Prints one JSON line a mode: the median of the steps after the first, seconds of collecting and of the update, the
age of what was trained on; and by the policy's version the share of turns whose tokens equal those of one device. Of
version 0 that must be all of them, later ones say how far rounding has gone: the norms of the first gradients and one
device once more show from where on. ``--tiny`` is a small model for a CPU.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.real_sizes import PROCESSORS, TINY, configuration, family
from cuarl.policy import tiny
from cuarl.store import Store
from cuarl.trajectory import RewardPart, Trajectory

ROOT = Path(__file__).parents[1]
ASYNCHRONOUS = ("--max-steps-off-policy", "1")
TIMES = ("time/step_s", "time/rollout_s", "time/train_s")
AGES = ("async/staleness_mean", "async/staleness_max", "policy/logprob_diff_mean")


def spread(trajectory: Trajectory) -> Sequence[RewardPart]:
    """A reward from 0 to 1 that depends on the tokens alone."""
    said = repr([turn.sampled.token_ids for turn in trajectory.turns if turn.sampled])
    return [RewardPart(name="spread", value=zlib.crc32(said.encode()) % 1000 / 1000)]


def write_model(name: str, folder: Path, device: torch.device) -> None:
    """A model folder of that shape: random weights in bfloat16, the shipped base's tokenizer, the family's pictures."""
    from transformers import AutoModelForImageTextToText, AutoTokenizer, Qwen2VLImageProcessorPil

    tokenizer = AutoTokenizer.from_pretrained(str(tiny.path()))
    torch.manual_seed(0)
    with device:
        model = AutoModelForImageTextToText.from_config(configuration(name, tokenizer), dtype=torch.bfloat16)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    Qwen2VLImageProcessorPil(**PROCESSORS[family(name)]).save_pretrained(folder)


def modes(devices: Sequence[str], vllm: str | None) -> dict[str, list[str]]:
    """Options of each mode, by its name; with one device those without a second, and vLLM where its Python is given."""
    first = ["--device", devices[0]]
    found = {"one": first, "one, again": first, "one, asynchronous": [*first, *ASYNCHRONOUS]}
    if len(devices) > 1:
        both = [*first, "--sampler-device", devices[1]]
        found |= {"two": both, "two, asynchronous": [*both, *ASYNCHRONOUS]}
    if vllm is not None:
        served = [*first, "--vllm-python", vllm, "--vllm-devices", devices[-1].rpartition(":")[2]]
        served += ["--vllm-gpu-memory", "0.6", "--vllm-args", "--max-model-len 8192 --skip-mm-profiling"]
        found |= {"vllm": served, "vllm, asynchronous": [*served, *ASYNCHRONOUS]}
    return found


def train(name: str, options: Sequence[str], model: Path, runs: Path, args: argparse.Namespace) -> None:
    sizes = ["--groups-per-batch", str(args.groups), "--group-size", str(args.group_size)]
    sizes += ["--max-turns", str(args.turns), "--max-tokens", str(args.tokens), "--max-steps", str(args.steps)]
    sizes += ["--max-concurrent-rollouts", str(2 * args.groups * args.group_size)]
    unmeasured = ["--skip-baseline", "--eval-every", "0", "--eval-episodes", "1", "--save-every", "0"]
    command = [sys.executable, "-m", "cuarl", "train", "--model-name", str(model), "--renderer-name", args.format,
               "--tasks", "settings", "--difficulty", "easy", "--profile", args.profile, "--use-lora",
               "--reward", "benchmarks.two_devices:spread", "--name", name.replace(", ", "-"), *sizes, *unmeasured,
               *options]  # fmt: skip
    places = {"CUARL_RUNS_DIR": str(runs), "DATABASE_URL": f"sqlite:///{runs}/cuarl.db", "HF_HUB_OFFLINE": "1"}
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    subprocess.run(command, cwd=ROOT, env={**os.environ, **places, "PYTHONPATH": paths}, check=True)


def sampled(runs: Path, name: str) -> dict[tuple[int, str, int, int], tuple[int, ...]]:
    """Tokens of each trained turn, by the policy that said them, group, attempt and turn."""
    with Store.open(f"sqlite:///{runs}/cuarl.db") as store:
        (run,) = [r for r in store.runs() if r.name == name.replace(", ", "-")]
        return {
            (
                turn.sampled.policy_version,
                t.group_id.removeprefix(run.id),
                t.attempt,
                turn.index,
            ): turn.sampled.token_ids
            for t in store.trajectories(run=run.id)
            if t.purpose == "train"
            for turn in t.turns
            if turn.sampled
        }


def equal_share(one: Mapping[Any, Any], other: Mapping[Any, Any]) -> dict[int, float]:
    """Share of ``other``'s turns with the tokens of ``one``, by the policy's version; turns of both alone count."""
    found: dict[int, list[bool]] = {}
    for key in one.keys() & other.keys():
        found.setdefault(key[0], []).append(one[key] == other[key])
    return {version: round(sum(same) / len(same), 3) for version, same in sorted(found.items())}


def measured(runs: Path, name: str) -> dict[str, Any]:
    """The medians of a run's steps but the first two, which fill the slots and choose kernels, and the last, which
    evaluates."""
    lines = [json.loads(x) for x in (runs / name.replace(", ", "-") / "metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if "time/step_s" in line]
    late = steps[2:-1] or steps
    medians = {n: [s[n] for s in late if n in s] for n in (*TIMES, *AGES)}
    return {
        "steps": len(steps),
        "gradients": [step["optim/grad_norm"] for step in steps[:3]],
        "first_step_s": round(steps[0]["time/step_s"], 2),
        **{n: round(statistics.median(v), 4) for n, v in medians.items() if v},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="file to append the JSON lines to, besides standard output")
    parser.add_argument("--model", default="Qwen3-VL-2B")
    parser.add_argument("--devices", nargs="+", default=["cuda:0", "cuda:1"])
    parser.add_argument("--vllm-python", help="sample from a vLLM of this interpreter's on the last device, too")
    parser.add_argument("--modes", nargs="+", help="only these, such as 'two, asynchronous'")
    parser.add_argument("--tiny", action="store_true", help="a small model, both jobs on a CPU")
    parser.add_argument("--profile", default="phone", help="screen of the simulated phone")
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--steps", type=int, default=6)
    args = parser.parse_args()
    name = TINY[0] if args.tiny else args.model
    devices = ["cpu", "cpu"] if args.tiny else args.devices
    args.format = family(name)
    with tempfile.TemporaryDirectory() as folder:
        model, runs = Path(folder) / name, Path(folder) / "runs"
        write_model(name, model, torch.device(devices[0]))
        torch.cuda.empty_cache()
        first: dict[bool, dict[Any, Any]] = {}
        for mode, options in modes(devices, args.vllm_python).items():
            if mode not in (args.modes or [mode]):
                continue
            train(mode, options, model, runs, args)
            tokens = sampled(runs, mode)
            one = first.setdefault("asynchronous" in mode, tokens)
            line = {
                "mode": mode,
                "model": name,
                "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
                "torch": torch.__version__,
                "turns": len(tokens),
                **measured(runs, mode),
                "equal": equal_share(one, tokens),
            }
            print(json.dumps(line), flush=True)
            if args.out:
                with args.out.open("a") as file:
                    file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main()
