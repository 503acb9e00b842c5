"""The ledger of a run's costs: sums by purpose and device, with people's verdicts, and money by prices."""

import pytest
from sqlalchemy import event

from cuarl.store import Store
from cuarl.store.costs import Prices, costs_of
from cuarl.store.pages import Pages
from cuarl.store.records import HumanVerdict
from tests.unit.monitor.web.made import PICTURE, episode, task
from tests.unit.store.databases import postgres_tables, sqlite_tables, sqlite_url, url
from tests.unit.store.samples import run

__all__ = ["postgres_tables", "sqlite_tables", "sqlite_url", "url"]


@pytest.fixture
def pages(url, tmp_path):
    with Store.open(url, f"{tmp_path}/blobs", runs_dir=tmp_path) as store:
        store.blobs.put([PICTURE])
        store.save_tasks([task("wifi_on")])
        machine = {"machine": {"cpus": 2, "gpus": ["NVIDIA H200, 570.1, 143771 MiB"]}}
        store.start_run(run("a", name="a").model_copy(update={"info": machine, "config": {"device": "auto"}}))
        for attempt, seconds in enumerate((10.0, 20.0, 30.0)):
            store.enqueue(episode("a", 1, 0, attempt, "wifi_on", success=attempt == 0, wall_s=seconds))
        store.enqueue(episode("a", 1, 1, 0, "wifi_on", purpose="eval", success=True, wall_s=5.0, backend=""))
        for step in (1, 2):
            store.log_metrics("a", step, {"time/step_s": 1800.0})
        store.drain()
        store.save_human_verdict(HumanVerdict(episode_id="a.1.0.1", success=True, reason="it was on", actor="ann"))
        yield Pages(store.engine)


def ledger(pages, most=None, **prices):
    [record] = pages.runs_by_id(["a"])
    return costs_of(pages, record, Prices(**prices), most=most)


def test_the_ledger_adds_up_by_purpose_and_device(pages):
    found = ledger(pages)
    rows = [(c.purpose, c.device, c.episodes, c.successes, c.device_s) for c in found.lines]
    # the verdict of one attempt was overruled; where no backend is known the environment stands for it
    assert rows == [("eval", "phone", 1, 1, 5.0), ("train", "gbox", 3, 2, 60.0)]
    one = episode("a", 1, 0, 0, "wifi_on").usage
    two = episode("a", 1, 1, 0, "wifi_on").usage
    assert found.tokens_in == 3 * one.prompt_tokens + two.prompt_tokens > 0
    assert found.tokens_out == 3 * one.sampled_tokens + two.sampled_tokens > 0
    assert (found.machine, found.machine_s, found.successes, found.device_s) == ("NVIDIA H200", 3600.0, 3, 65.0)


def test_money_counts_what_has_a_price(pages):
    assert ledger(pages).money is None
    assert ledger(pages, machine_hour=3.5).money == pytest.approx(3.5)
    assert ledger(pages, machine_hour=0.0, device_hour=36.0).money == pytest.approx(65 / 3600 * 36)
    found = ledger(pages, million_tokens_in=1e6, million_tokens_out=2e6)
    assert found.money == pytest.approx(found.tokens_in + 2 * found.tokens_out)


def test_a_run_of_too_many_episodes_has_none(pages):
    assert ledger(pages, most=3) is None
    assert ledger(pages, most=4) == ledger(pages)


@pytest.mark.parametrize("order", ["reward", "turns", "-seconds"])
def test_neither_the_ledger_nor_an_order_reads_the_rows_of_a_large_run(tmp_path, order):
    with Store.open(f"sqlite:///{tmp_path}/x.db", runs_dir=tmp_path) as store:
        asked = []
        event.listen(store.engine, "before_cursor_execute", lambda *given: asked.append(given[2:4]))
        Pages(store.engine).cost_lines("a", None)
        Pages(store.engine).episode_lines({"run": "a"}, sort=order)
        told = {text: store_plan(store, text, values) for text, values in tuple(asked) if "FROM episodes" in text}
        sums = next(plan for text, plan in told.items() if "sum(" in text)
        page = next(plan for text, plan in told.items() if "LIMIT" in text and "IN (SELECT" in text)
    assert any("COVERING INDEX ix_episodes_ledger" in line for line in sums)
    assert any("COVERING INDEX ix_episodes_ledger" in line for line in page)


def store_plan(store, text, values):
    with store.engine.connect() as connection:
        return [row[3] for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {text}", values)]
