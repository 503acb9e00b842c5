"""Workers on a Ray cluster of two machines, both of them this one, of which one goes."""

import threading

import pytest

from cuarl.config.load import resolve
from cuarl.errors import ConfigError
from cuarl.settings import Settings
from cuarl.workflow.workers import hire
from tests.integration.test_workers import played, rooms, same, tasks  # noqa: F401

pytest.importorskip("ray", reason="the extra ray is not installed: pip install 'cuarl[ray]'")
pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]


@pytest.fixture
def machines(monkeypatch):
    """A cluster, and its two machines of one core each."""
    from ray.cluster_utils import Cluster

    for name, value in (("RAY_USAGE_STATS_ENABLED", "0"), ("RAY_worker_niceness", "0")):
        monkeypatch.setenv(name, value)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    cluster.wait_for_nodes()
    monkeypatch.setenv("RAY_ADDRESS", cluster.address)
    yield cluster, nodes
    cluster.shutdown()


class Removes:
    """A watcher that takes a machine away once a tenth of the episodes are over."""

    def __init__(self, cluster, node):
        self._remove = threading.Thread(target=cluster.remove_node, args=(node, False))

    def note(self, text):
        pass

    def event(self, kind, data):
        pass

    def progress(self, what, total, *, part=False):
        from contextlib import nullcontext

        return nullcontext(self._told)

    def _told(self, trajectory, done, total):
        if done == total // 10:
            self._remove.start()


def test_all_episodes_are_there_although_a_machine_goes(tmp_path, machines, caplog):
    cluster, nodes = machines
    chosen = tasks(*["slow", ""] * 100)
    shared = played(tmp_path, chosen, workers="ray", watcher=Removes(cluster, nodes[0]), max_concurrent_rollouts=16)
    assert len(shared) == 200 and not [t for t in shared if t.failure]
    assert "has died" in caplog.text
    assert same(shared, played(tmp_path, chosen))


def test_more_workers_than_cores_are_refused(machines):
    config = resolve(flags={"workers": "3@ray"}).config

    async def work():
        crew = hire.crew(config, Settings())
        async with crew.employed():
            await crew.start()

    import anyio

    with pytest.raises(ConfigError, match="3 workers need a core each, and the cluster has 2 free"):
        anyio.run(work)
