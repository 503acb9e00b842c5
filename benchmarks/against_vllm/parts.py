"""What is measured with the server up. Each part is given the bench and returns figures, seconds if not named."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import torch

from benchmarks.against_vllm.bench import ENGINES, Bench, pictures, timed
from benchmarks.against_vllm.differences import difference, recorded, samples, scored
from benchmarks.against_vllm.server import NAME, ServerError
from cuarl.policy.handover import publish
from cuarl.policy.remote import adapters
from cuarl.train.batch import Batch


def rollout(bench: Bench) -> dict[str, Any]:
    """The same number of episodes with each engine, twice, nothing known before."""
    found: dict[str, Any] = {"features": bench.remote.features.model_dump(exclude_defaults=True)}
    for engine in ENGINES:
        first_s, _ = timed(lambda engine=engine: bench.play(engine, 2, 2))
        seconds = []
        for _ in range(bench.steps):
            bench.forget()
            took, batch = timed(lambda engine=engine: bench.play(engine))
            seconds.append(round(took, 2))
        bench.kept[engine] = batch
        answers = samples(batch)
        found[engine] = {
            "first_s": round(first_s, 2),
            "seconds": seconds,
            "turns": len(answers),
            "exact": sum(a.exact for a in answers),
            "answer_tokens": sum(len(a.token_ids) for a in answers),
            "prompt_tokens": sum(len(a.prompt_ids) for a in answers),
            "turns_per_s": round(len(answers) / min(seconds), 2),
        }
    screen = next(iter(bench.kept[ENGINES[1]].pictures.values()))
    found["png_ms"] = round(1e3 * timed(screen.png)[0], 1)
    return found


def logprobs(bench: Bench) -> dict[str, Any]:
    """What each engine told of its tokens against what training computes for them."""
    found = {}
    asked = bench.requests(bench.rows[-1], bench.row_tokens)
    for engine in ENGINES:
        batch = bench.kept.get(engine) or bench.play(engine)
        for what, answers, shown in (
            ("episodes", samples(batch), batch.pictures),
            ("single screens", bench.answers(engine, asked), pictures(asked)),
        ):
            found[f"{what}, {engine}"] = difference(recorded(answers), scored(bench.policy, answers, shown))
    return found


def train(bench: Bench) -> dict[str, Any]:
    """GRPO steps with the episodes of either engine; the first update warms up and is not counted."""
    _update(bench, bench.play("in process", 4, 2))
    found: dict[str, Any] = {engine: [] for engine in ENGINES}
    for _ in range(bench.steps):
        for engine in ENGINES:
            handed_s = timed(lambda: _hand_over(bench))[0] if engine == "vllm" else 0.0
            played_s, batch = timed(lambda engine=engine: bench.play(engine))
            updated_s, metrics = timed(lambda batch=batch: _update(bench, batch))
            told = {name: metrics[name] for name in _TOLD if name in metrics}
            found[engine].append(
                {
                    "hand_over": round(handed_s, 3),
                    "rollout": round(played_s, 2),
                    "update": round(updated_s, 2),
                    "step": round(handed_s + played_s + updated_s, 2),
                    **told,
                }
            )
    return found


_TOLD = ("policy/loss", "policy/kl_sampler", "policy/logprob_diff_mean", "policy/ratio_mean", "optim/grad_norm")


def adapter_versions(bench: Bench) -> dict[str, Any]:
    """Adapters written, loaded and answered with; log-probabilities of version N are ours of N, of no other."""
    rows: list[dict[str, Any]] = []
    asked = bench.requests(4, 16)
    shown = pictures(asked)
    for version in range(1, bench.steps + 2):
        _set_version(bench, version)
        row = _hand_over(bench)
        first_s, _ = timed(lambda: bench.answers("vllm", bench.requests(1, 1)))
        answers = bench.answers("vllm", asked)
        told, of = recorded(answers), {}
        for name, other in (("own", version), ("before", version - 1)):
            _set_version(bench, other)
            of[name] = difference(told, scored(bench.policy, answers, shown))["mean"]
        rows.append({**row, "first_token_ms": round(1e3 * first_s, 1), "mean_apart": of})
    right = all(row["mean_apart"]["own"] < row["mean_apart"]["before"] / 3 for row in rows)
    return {"versions": rows, "each_is_its_own": right}


def throughput(bench: Bench) -> dict[str, Any]:
    """Answers at a time, a screenshot in each prompt: tokens a second, all of it included."""
    found: dict[str, Any] = {}
    for rows in bench.rows:
        for engine in ENGINES:
            bench.answers(engine, bench.requests(rows, 4, first=1))
            bench.forget()
            seconds, answers = timed(
                lambda rows=rows, engine=engine: bench.answers(engine, bench.requests(rows, bench.row_tokens))
            )
            tokens = sum(len(one.token_ids) for one in answers)
            found[f"{rows} rows, {engine}"] = {
                "seconds": round(seconds, 2),
                "tokens": tokens,
                "tokens_per_s": round(tokens / seconds),
                "prompt_tokens": sum(len(one.prompt_ids) for one in answers),
            }
    return found


def sleep(bench: Bench) -> dict[str, Any]:
    """The server gives its memory back and takes it again; the same prompts have the same answers afterwards."""
    asked = bench.requests(2, 8, temperature=0.0)
    before, awake = bench.answers("vllm", asked), bench.memory_gib()
    asleep_s, _ = timed(lambda: bench.server.post("sleep?level=1"))
    asleep = bench.memory_gib()
    woken_s, _ = timed(lambda: bench.server.post("wake_up"))
    first_s, after = timed(lambda: bench.answers("vllm", asked))
    apart = difference(recorded(before), recorded(after))["largest"]
    return {
        "sleep": round(asleep_s, 2),
        "wake": round(woken_s, 2),
        "answers": round(first_s, 2),
        "gib_awake": awake,
        "gib_asleep": asleep,
        "largest_apart": apart,
        "same": [a.token_ids for a in before] == [b.token_ids for b in after],
    }


def asynchronous(bench: Bench) -> dict[str, Any]:
    """``cuarl train`` as a command, from this server, in turn and beside collecting; the reward is chance."""
    found: dict[str, Any] = {}
    for age in (0, 1):
        name = f"age-{age}"
        command = [*_COMMAND, "--model-name", str(bench.base), "--model-base-url", bench.server.api, "--name", name]
        command += ["--max-steps-off-policy", str(age), "--device", str(bench.policy.device), "--max-steps", "6"]
        command += ["--max-tokens", str(2 * bench.answer_tokens)]
        command += ["--profile", "tall" if bench.size.height > 1000 else "small"]
        place = bench.folder / "runs"
        shutil.rmtree(place, ignore_errors=True)
        done = subprocess.run([*command, "--runs-dir", str(place)], capture_output=True, text=True, cwd=bench.folder)
        if done.returncode:
            raise ServerError(f"{name}: {done.stderr[-1500:]}")
        rows = [json.loads(line) for line in (place / name / "metrics.jsonl").read_text().splitlines()]
        # the first step meets everything for the first time
        steps = [row for row in rows if row.get("step", 0) > 1 and "time/step_s" in row]
        told = {key: [float(f"{row[key]:.3g}") for row in steps if key in row] for key in _TOLD_OF_STEPS}
        found[name] = {"step_s": round(sum(told["time/step_s"]) / len(steps), 2), **told}
    return found


_COMMAND = (
    sys.executable, "-m", "cuarl", "train", "--tasks", "settings", "--difficulty", "easy", "--group-size", "8",
    "--groups-per-batch", "2", "--max-turns", "3", "--skip-baseline",
    "--reward", "benchmarks.against_vllm.chance:chance", "--eval-every", "0", "--eval-episodes", "1",
    "--save-every", "0",
)  # fmt: skip
_TOLD_OF_STEPS = (
    "time/step_s",
    "time/rollout_s",
    "time/train_s",
    "policy/lag_mean",
    "policy/kl_sampler",
    "policy/ratio_mean",
)


def beside(bench: Bench) -> dict[str, Any]:
    """What collecting the next step's episodes gains while this one is learnt from, with full screens."""
    _update(bench, bench.play("vllm"))
    batch = bench.play("vllm")
    in_turn, _ = timed(lambda: [_update(bench, _fresh(bench)) for _ in range(bench.steps)])
    overlapped, _ = timed(lambda: _overlapped(bench, batch))
    return {"steps": bench.steps, "in_turn": round(in_turn, 2), "beside": round(overlapped, 2)}


def _fresh(bench: Bench) -> Batch:
    _hand_over(bench)
    return bench.play("vllm")


def _overlapped(bench: Bench, batch: Batch) -> None:
    for _ in range(bench.steps):
        _hand_over(bench)
        with ThreadPoolExecutor(1) as beside:
            made = beside.submit(bench.play, "vllm")
            _update(bench, batch)
            batch = made.result()


# --- steps of several parts ----------------------------------------------------------------------------------------


def _update(bench: Bench, batch: Batch) -> Mapping[str, float]:
    bench.step += 1
    bench.learner.begin_step(bench.step)
    return bench.learner.update(batch, bench.step)


def _hand_over(bench: Bench) -> dict[str, float]:
    """Have the server sample from the policy as it is now; milliseconds of each stage."""
    name = f"v{time.monotonic_ns()}"
    folder = bench.folder / name
    written_s, _ = timed(lambda: publish(bench.policy.model, folder))

    async def load() -> None:
        await adapters.load(bench.remote.endpoint, name, str(folder))
        await bench.remote.close()

    async def unload(before: str) -> None:
        await adapters.unload(bench.remote.endpoint, before)
        await bench.remote.close()

    loaded_s, _ = timed(lambda: anyio.run(load))
    bench.remote.use(name)
    before, bench.loaded = bench.loaded, name
    unloaded_s = timed(lambda: anyio.run(unload, before))[0] if before else 0.0
    size = sum(one.stat().st_size for one in folder.iterdir())
    shutil.rmtree(folder)
    return {
        "mib": round(size / 2**20, 1),
        "write_ms": round(1e3 * written_s, 1),
        "load_ms": round(1e3 * loaded_s, 1),
        "unload_ms": round(1e3 * unloaded_s, 1),
    }


def _set_version(bench: Bench, version: int) -> None:
    """Weights that are those of that version alone, the base's for 0."""
    chance = torch.Generator().manual_seed(version)
    with torch.no_grad():
        for name, value in bench.policy.model.named_parameters():
            if "lora_B" in name:
                drawn = torch.randn(value.shape, generator=chance) * (0.01 if version else 0.0)
                value.copy_(drawn.to(value))
    bench.policy.updated()


def back_to_base(bench: Bench) -> None:
    """Nothing is left of what parts have loaded."""
    if bench.loaded is None:
        return

    async def unload() -> None:
        await adapters.unload(bench.remote.endpoint, bench.loaded or "")
        await bench.remote.close()

    anyio.run(unload)
    bench.remote.use(NAME)
    bench.loaded = None
    _set_version(bench, 0)


PARTS: Mapping[str, Callable[[Bench], Mapping[str, Any]]] = {
    "rollout": rollout,
    "logprobs": logprobs,
    "adapters": adapter_versions,
    "throughput": throughput,
    "sleep": sleep,
    "train": train,
    "beside": beside,
    "asynchronous": asynchronous,
}
"""In the order in which they are run."""
