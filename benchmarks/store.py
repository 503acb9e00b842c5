"""How much the store costs: 1,000 six-turn episodes, 64 in flight, each with seven screenshots of 360x640 pixels.

    python -m benchmarks.store                      SQLite in a temporary folder
    python -m benchmarks.store --url postgresql://… another database (it must be migrated, and is left full)

Nothing else runs, so ``cpu_ms_per_episode`` is what the store adds to an episode; set it against what an episode costs.
``cpu_share`` is that work as a share of one core while saving at full speed. Screenshots are encoded once: the first
line has none that are new, the second as many new ones as a quarter of all that are shown.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from pathlib import Path

import anyio
from PIL import Image, ImageDraw

from cuarl.store import RunRecord, Store, new_id
from cuarl.trajectory import Sampled, Trajectory, Turn, Verdict
from cuarl.types import Click, Screenshot, StopReason

SIZE = (360, 640)
TURNS = 6
PROMPT_TOKENS, SAMPLED_TOKENS = 800, 30


def screen(rng: random.Random) -> Screenshot:
    """A picture about as hard to encode as a phone's settings page."""
    image = Image.new("RGB", SIZE, (245, 245, 248))
    draw = ImageDraw.Draw(image)
    for row in range(10):
        top = 20 + row * 60
        colour = tuple(rng.randrange(60, 220) for _ in range(3))
        draw.rounded_rectangle((12, top, 348, top + 50), 10, fill=(255, 255, 255))
        draw.ellipse((22, top + 9, 54, top + 41), fill=colour)
        draw.text((70, top + 10), f"Setting {rng.randrange(10_000)}", fill=(20, 20, 20))
        draw.text((70, top + 28), f"{rng.random():.6f} of {rng.random():.6f}", fill=(120, 120, 120))
    return Screenshot(image)


def episode(
    rng: random.Random, pool: list[Screenshot], run_id: str, number: int
) -> tuple[Trajectory, list[Screenshot]]:
    shots = [rng.choice(pool) for _ in range(TURNS + 1)]
    turns = []
    for i in range(TURNS):
        sampled = Sampled(
            prompt_ids=tuple(rng.randrange(4000) if j % 8 else 151655 for j in range(PROMPT_TOKENS)),
            images=tuple(s.ref for s in shots[max(0, i - 2) : i + 1]),
            token_ids=tuple(rng.randrange(4000) for _ in range(SAMPLED_TOKENS)),
            logprobs=tuple(-rng.random() for _ in range(SAMPLED_TOKENS)),
            text="x" * 120,
            policy="bench",
        )
        action = Click(x=rng.randrange(360), y=rng.randrange(640))
        turns.append(Turn(index=i, screenshot=shots[i].ref, action=action, sampled=sampled, model_s=0.1, env_s=0.01))
    done = Trajectory(
        episode_id=f"{run_id}-{number:05d}",
        run_id=run_id,
        group_id=f"{run_id}-g{number // 8}",
        attempt=number % 8,
        purpose="train",
        task_id="bench",
        goal="Turn Wi-Fi on",
        turns=tuple(turns),
        final_screenshot=shots[-1].ref,
        stop=StopReason.DONE,
        verdict=Verdict(success=True, score=1.0),
        reward=1.0,
    )
    return done, shots


async def save_all(store: Store, episodes: list[tuple[Trajectory, list[Screenshot]]], in_flight: int) -> None:
    limit = anyio.Semaphore(in_flight)

    async def one(trajectory: Trajectory, shots: list[Screenshot]) -> None:
        async with limit:
            await store.submit(trajectory, shots)

    async with anyio.create_task_group() as group:
        for trajectory, shots in episodes:
            group.start_soon(one, trajectory, shots)
    await store.flush()


def measure(url: str, blobs: str, count: int, fresh: float, in_flight: int) -> dict[str, float]:
    """``fresh`` is the share of screenshots that were never seen before; the rest are repeats, as in a group."""
    rng = random.Random(0)
    run_id = new_id("bench")
    pool = [screen(rng) for _ in range(max(1, round(count * (TURNS + 1) * fresh)))]
    for shot in pool:
        _ = shot.digest  # the rollout has computed it for its record
    episodes = [episode(rng, pool, run_id, number) for number in range(count)]
    with Store.open(url, blobs) as store:
        store.start_run(RunRecord(id=run_id, name=run_id))
        wall, cpu = time.perf_counter(), time.process_time()
        anyio.run(save_all, store, episodes, in_flight)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        started = time.perf_counter()
        loaded = sum(1 for _ in store.trajectories(run=run_id))
        read_s = time.perf_counter() - started
    assert loaded == count
    return {
        "episodes": count,
        "fresh_screens": len(pool),
        "episodes_per_s": round(count / wall, 1),
        "cpu_ms_per_episode": round(1e3 * cpu / count, 2),
        "cpu_share": round(cpu / wall, 2),
        "wall_s": round(wall, 2),
        "loaded_per_s": round(count / read_s, 1),
    }


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--url")
    options.add_argument("--episodes", type=int, default=1000)
    options.add_argument("--in-flight", type=int, default=64)
    given = options.parse_args()
    for fresh in (0.0, 0.25):
        with tempfile.TemporaryDirectory() as folder:
            url = given.url or f"sqlite:///{folder}/bench.db"
            result = measure(url, f"{folder}/blobs", given.episodes, fresh, given.in_flight)
            size = sum(f.stat().st_size for f in Path(folder).rglob("*") if f.is_file())
            print(json.dumps({**result, "mib": round(size / 2**20, 1)}))


if __name__ == "__main__":
    main()
