"""A monitor over a small store of real rows, asked without a network."""

from contextlib import asynccontextmanager

import httpx
import pytest

from cuarl.store import EvaluationRecord, Store
from cuarl.store.live import LiveWriter
from cuarl.store.records import BaselineRecord, HumanVerdict
from cuarl.workflow.monitoring import Options, monitor_app
from tests.unit.monitor.web.made import PICTURE, episode, live_rows, task
from tests.unit.store.databases import postgres_tables, sqlite_tables, sqlite_url, url
from tests.unit.store.samples import run

__all__ = ["postgres_tables", "sqlite_tables", "sqlite_url", "url"]


@pytest.fixture
def store(sqlite_url, tmp_path):
    with Store.open(sqlite_url, f"{tmp_path}/blobs", runs_dir=tmp_path) as opened:
        yield opened


def fill(store, evil=""):
    """Two trainings, of which one is under way, each with two steps, evaluations and a failure; ``evil`` is put into
    every text."""
    store.blobs.put([PICTURE])
    store.save_tasks([task(name, evil) for name in ("wifi_on", "dark_mode")])
    for name in ("base", "better"):
        record = run(name, name=f"{name}{evil}", status="running", model=f"tiny{evil}", message=evil, total_steps=4)
        store.start_run(
            record.model_copy(update={"config": {"note": f"x{evil}"}, "started_at": 1.7e9 + (name == "better")})
        )
        for step in (1, 2):
            values = {"episode/success_rate": 0.5, "reward/mean": 0.2 * step, "stop/done": 1.0, "group/frac_mixed": 0.5}
            store.log_metrics(name, step, {**values, "time/step_s": 3.0, "time/train_s": 1.0, "failure/env": 0.1})
            for group, title in enumerate(("wifi_on", "dark_mode")):
                for attempt in range(2):
                    store.enqueue(episode(name, step, group, attempt, title, evil))
        for step in (0, 2):
            ids = []
            for i, title in enumerate(("wifi_on", "dark_mode")):
                one = episode(name, step, 10 + i, 0, title, evil, purpose="eval", success=name == "better" or i == 0)
                store.enqueue(one)
                ids.append(one.episode_id)
            baseline = BaselineRecord(outcomes=(("wifi_on", "7", False), ("dark_mode", "7", False)))
            measured = {"success_rate": 0.5, "ci_low": 0.1, "ci_high": 0.9, "n": 2.0}
            store.save_evaluation(
                EvaluationRecord(
                    id=f"{name}.eval.{step}",
                    run_id=name,
                    suite=f"settings{evil}",
                    step=step,
                    metrics=measured,
                    baselines={f"random{evil}": baseline},
                    info={"x": evil},
                ),
                ids,
            )
    store.drain()
    store.finish_run("base", "completed", evil)
    store.save_human_verdict(
        HumanVerdict(episode_id="base.1.0.0", success=False, reason=f"no{evil}", actor=f"ann{evil}")
    )
    LiveWriter(store.engine).write(live_rows("better", evil), "better")


@asynccontextmanager
async def asking(store, base="http://127.0.0.1", **options):
    """A client of a monitor of ``store``."""
    transport = httpx.ASGITransport(monitor_app(store, Options(**options)), raise_app_exceptions=True)
    async with httpx.AsyncClient(transport=transport, base_url=base) as client:
        yield client
