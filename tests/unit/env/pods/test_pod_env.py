"""Pods over the real paths of the API server, against the local one."""

from __future__ import annotations

from functools import partial

import anyio
import pytest
import stamina

pytest.importorskip("uvicorn", reason="the local server needs the extra web")

from cuarl import safe_text
from cuarl.env.conformance import CHECKS
from cuarl.env.leases import Ledger, sweep
from cuarl.env.pods.backend import Ways
from cuarl.env.pods.client import Pods
from cuarl.env.pods.cluster import Where, find
from cuarl.env.pods.env import PodEnv
from cuarl.env.pods.manifest import LEASE, load
from cuarl.env.pods.options import Options
from cuarl.errors import EnvError
from cuarl.local.faults import Faults
from cuarl.settings import Settings
from cuarl.tasks.check import verdict
from cuarl.tasks.source import load as load_tasks
from cuarl.tasks.task import Check, TaskInstance
from cuarl.types import Button, Click, Key, LongPress, Scroll, TypeText
from tests.fakes.kubernetes import TOKEN, cluster

PHONE = TaskInstance(task_id="t", goal="g", checks=(Check(path="network.nfc", value=False),))
FORM = TaskInstance(
    task_id="form", goal="g", env="pods", checks=(Check(path="progress.num_correct_submissions", value=1),)
)
OPTIONS = Options(settle_ms=10, start_seconds=20)


@pytest.fixture(scope="module")
def server():
    # one server for all that expect no faults: a server takes half a second to start and stop
    with cluster() as running:
        yield running


class Alone(PodEnv):
    """A pod with connections of its own."""

    async def close(self):
        await super().close()
        await self.ways.close()


def pod(url, ledger, kind="phone", *, proxy=None, token=TOKEN, options=OPTIONS, template=None):
    pods, template = Pods(find(Where(url, token))), template or load()
    ways = Ways(pods, proxy, template.port)
    made = Alone(pods, ledger, ways.connect(kind), options, template, kind, anyio.CapacityLimiter(4))
    made.ways = ways
    return made


def with_task(task_id):
    """A manifest whose container is started with a task, as those of other session servers are."""
    template = load()
    container = template.body["spec"]["containers"][0]
    container["args"] = ["sessions", "serve", "desktop", "--task", task_id]
    return template


async def steps(env, count=4):
    await env.reset(PHONE, 1)
    for _ in range(count):
        await env.step(Button(name="home"))


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("proxied", [False, True], ids=["through-the-api-server", "through-a-proxy"])
def test_pod_keeps_the_contract(check, proxied, server, tmp_path):
    ledger = Ledger(tmp_path)

    async def make():
        return pod(server.url, ledger, proxy=server.url if proxied else None)

    anyio.run(check, make, PHONE)
    assert server.fake.counts()["live"] == 0
    assert ledger.leases() == []


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_pod_of_another_server_keeps_the_contract(check, server, tmp_path):
    async def make():
        return pod(server.url, Ledger(tmp_path), "pods", template=with_task("desk_dark_style"))

    anyio.run(check, make, FORM)
    assert server.fake.counts()["live"] == 0


def test_pod_bears_its_owner_and_its_end(server, tmp_path):
    async def run():
        env = pod(server.url, Ledger(tmp_path))
        await env.reset(PHONE, 1)
        ((namespace, name),) = server.fake.pods
        shown = server.fake.pods[namespace, name].shown()
        await env.close()
        return name, shown

    name, shown = anyio.run(run)
    labels = shown["metadata"]["labels"]
    assert name == f"session-{labels['session-id']}" and len(labels["session-id"]) == 8
    assert labels["app.kubernetes.io/managed-by"] == "cuarl" and labels["cuarl/owner"] and len(labels[LEASE]) == 24
    assert (
        shown["spec"]["activeDeadlineSeconds"] == OPTIONS.expires_seconds and shown["spec"]["restartPolicy"] == "Never"
    )


def test_token_of_a_session_is_masked_while_there_is_one(server, tmp_path):
    async def run():
        env = pod(server.url, Ledger(tmp_path))
        await env.reset(PHONE, 1)
        (made,) = server.fake.pods.values()
        token = made.manifest["spec"]["containers"][0]["env"][0]["value"]
        assert token not in safe_text.masked(f"the token is {token}.")
        await env.close()
        return token

    token = anyio.run(run)
    assert token in safe_text.masked(token), "a long run does not collect the secrets of all its sessions"


def test_lease_is_written_before_the_pod_is_asked_for(tmp_path):
    ledger = Ledger(tmp_path)
    seen = []

    class Watching(Faults):
        def draw(self):
            seen.append([lease.id for lease in ledger.leases()])
            return super().draw()

    async def begin(url):
        env = pod(url, ledger)
        await steps(env, 0)
        await env.ways.close()

    with cluster(faults=Watching()) as server:
        anyio.run(begin, server.url)
        ((_, name),) = server.fake.pods
        assert seen[0] == [name], "noted before the first request"
        (lease,) = ledger.leases()
        assert TOKEN not in lease.path.read_text()


def test_wrong_token_is_named_and_not_shown(server, tmp_path):
    async def run():
        env = pod(server.url, Ledger(tmp_path), token="another-token-9c")
        with pytest.raises(EnvError, match="401") as caught:
            await env.reset(PHONE, 1)
        assert "another-token-9c" not in str(caught.value)
        await env.close()

    anyio.run(run)


def test_refused_requests_are_sent_again_and_nothing_is_done_twice(tmp_path):
    async def run(url):
        env = pod(url, Ledger(tmp_path), proxy=url)
        await steps(env)
        await env.close()

    with cluster(faults=Faults(refuse=0.3), forgetful=True) as server:
        anyio.run(run, server.url)
        assert server.fake.counts() == {"made": 1, "live": 0, "peak": 1, "actions": 4, "doubled": 0}


@pytest.mark.parametrize("fault", ["breaks", "drop"])
def test_our_server_is_asked_again_and_does_nothing_twice(fault, tmp_path):
    async def run(url):
        env = pod(url, Ledger(tmp_path))
        await steps(env)
        await env.close()

    with cluster(faults=Faults(**{fault: 0.3}, seed=2)) as server:
        anyio.run(run, server.url)
        assert server.fake.counts() == {"made": 1, "live": 0, "peak": 1, "actions": 4, "doubled": 0}


@pytest.mark.parametrize("fault", ["breaks", "drop"])
def test_action_of_unknown_fate_fails_the_episode_where_the_server_is_another(fault, tmp_path):
    ledger = Ledger(tmp_path)

    async def run(server):
        env = pod(server.url, ledger, "pods", template=with_task("desk_dark_style"))
        await env.reset(FORM, 1)
        setattr(server.fake.faults, fault, 1.0)
        with pytest.raises(EnvError, match="Kubernetes"):
            await env.step(Click(x=5, y=5))
        setattr(server.fake.faults, fault, 0.0)
        await env.close()

    # where everything fails, asking twice is as good as asking eight times
    with stamina.set_testing(True, attempts=2), cluster(faults=Faults(seed=3), forgetful=True) as server:
        anyio.run(run, server)
        counts = server.fake.counts()
    assert counts["live"] == 0 and counts["actions"] <= 1 and counts["doubled"] == 0
    assert ledger.leases() == []


class Once(Faults):
    """The first request goes wrong after it was carried out."""

    def __init__(self, fault):
        super().__init__()
        self.fault = fault

    def draw(self):
        fault, self.fault = self.fault, ""
        return fault, True


@pytest.mark.parametrize("fault", ["break", "drop"])
def test_pod_that_was_made_although_the_answer_was_lost_is_taken_over(fault, tmp_path):
    async def run(url):
        env = pod(url, Ledger(tmp_path))
        await steps(env, 1)
        await env.close()

    with cluster(faults=Once(fault)) as server:
        anyio.run(run, server.url)
        counts = server.fake.counts()
    assert (counts["made"], counts["live"]) == (1, 0)


def test_pod_of_another_owner_is_never_deleted(server, tmp_path):
    async def run():
        pods = Pods(find(Where(server.url, TOKEN)))
        values = {"session_id": "0a1b2c3d", "session_type": "phone", "image": "i", "token": "t"}
        await pods.create(load().pod(values, "their-lease", 60))
        with pytest.raises(EnvError, match="another pod session-0a1b2c3d"):
            await pods.create(load().pod(values, "our-lease", 60))
        await pods.end("session-0a1b2c3d", "our-lease")
        assert await pods.get("session-0a1b2c3d")
        await pods.end("session-0a1b2c3d", "their-lease")
        assert await pods.get("session-0a1b2c3d") is None
        await pods.close()

    anyio.run(run)


def test_pod_that_can_not_start_says_why(server, tmp_path):
    async def run(image, seconds, words):
        ledger = Ledger(tmp_path)
        env = pod(server.url, ledger, options=Options(image=image, start_seconds=seconds))
        with pytest.raises(EnvError, match=words):
            await env.reset(PHONE, 1)
        await env.close()
        assert ledger.leases() == []

    anyio.run(run, "missing", 20, "ImagePullBackOff: Back-off pulling")
    server.fake.faults.start_s = 1e6
    anyio.run(run, "slow", 0.3, "within 0.3 s: its container waits: ContainerCreating")
    server.fake.faults.start_s = 0
    assert server.fake.counts()["live"] == 0


def test_b13_init_container_that_can_not_start_ends_the_episode_at_once(server, tmp_path):
    template = load()
    template.body["spec"]["initContainers"] = [{"name": "prepare", "image": "registry.example/missing:7"}]

    async def run():
        env = pod(server.url, Ledger(tmp_path), options=Options(settle_ms=10, start_seconds=300), template=template)
        with (
            pytest.raises(EnvError, match="its init container prepare can't run: ImagePullBackOff"),
            anyio.fail_after(60),
        ):
            await env.reset(PHONE, 1)
        await env.close()

    anyio.run(run)
    assert server.fake.counts()["live"] == 0


def test_init_container_that_has_done_its_part_does_not_stand_in_the_way(server, tmp_path):
    template = load()
    template.body["spec"]["initContainers"] = [{"name": "prepare", "image": "registry.example/prepare:7"}]

    async def run():
        env = pod(server.url, Ledger(tmp_path), template=template)
        await steps(env, 1)
        await env.close()

    anyio.run(run)


@pytest.mark.parametrize("kind", ["phone", "pods"])
def test_half_a_picture_is_asked_for_again(kind, server, tmp_path):
    async def run():
        own = kind == "phone"
        env = pod(server.url, Ledger(tmp_path), kind, template=None if own else with_task("desk_dark_style"))
        await env.reset(PHONE if own else FORM, 1)
        (made,) = server.fake.pods.values()
        made.halves = 3  # the action's own and two that are asked for
        result = await env.step(Button(name="home") if own else Click(x=5, y=5))
        assert made.halves == 0
        assert result.observation.screenshot.digest == (await env._session.screenshot()).digest
        await env.close()

    anyio.run(run)
    assert server.fake.counts()["live"] == 0


def test_action_whose_answer_is_lost_is_not_repeated_and_the_step_says_so(tmp_path):
    class Lost(Faults):
        lost = False

        def draw(self):
            now, self.lost = self.lost, False
            return ("drop", True) if now else ("", True)

    async def run(server):
        env = pod(server.url, Ledger(tmp_path), "pods", template=with_task("desk_dark_style"))
        await env.reset(FORM, 1)
        server.fake.faults.lost = True
        result = await env.step(Click(x=5, y=5))
        assert result.info["unknown_outcome"] is True
        assert "unknown_outcome" not in (await env.step(Click(x=9, y=5))).info
        await env.close()

    with cluster(faults=Lost(), forgetful=True) as server:
        anyio.run(run, server)
        assert server.fake.counts() == {"made": 1, "live": 0, "peak": 1, "actions": 2, "doubled": 0}


@pytest.mark.parametrize("kind", ["phone", "pods"])
def test_pod_lost_in_an_episode_is_named_with_its_reason(kind, server, tmp_path):
    async def run():
        env = pod(server.url, Ledger(tmp_path), kind, template=with_task("desk_dark_style") if kind == "pods" else None)
        await env.reset(FORM if kind == "pods" else PHONE, 1)
        (made,) = server.fake.pods.values()
        made.kill("OOMKilled")
        with pytest.raises(EnvError, match=r"pod session-\w+ is lost: it has failed \(OOMKilled"):
            await env.step(Click(x=5, y=5))
        await env.close()

    with stamina.set_testing(True, attempts=2):
        anyio.run(run)
    assert server.fake.counts()["live"] == 0


def test_pod_ends_by_itself_when_its_time_is_up(tmp_path):
    async def run(url):
        env = pod(url, Ledger(tmp_path), options=Options(settle_ms=10, expires_seconds=1))
        await env.reset(PHONE, 1)
        with pytest.raises(EnvError, match="DeadlineExceeded"):
            while True:
                await env.step(Button(name="home"))
        await env.close()

    with stamina.set_testing(True, attempts=2), cluster() as server:
        anyio.run(run, server.url)


def test_progress_scores_the_steps_and_the_episode(server, tmp_path):
    """The session's task is solved by actions in the protocol's words, without cuarl knowing the device."""

    async def run():
        env = pod(server.url, Ledger(tmp_path), "pods", template=with_task("desk_dark_style"))
        await env.reset(FORM, 1)
        before = await env.state()
        (made,) = server.fake.pods.values()
        rewards = []
        for _ in range(20):
            action = await made._session.oracle()
            if action.kind == "finish":
                break
            result = await env.step(action)
            assert "rejected" not in result.info, result.info
            rewards.append(result.reward)
        after = await env.state()
        await env.close()
        return before, rewards, after

    before, rewards, after = anyio.run(run)
    assert before == {
        "progress": {"num_correct_submissions": 0, "num_incorrect_submissions": 0, "submitted_row_indices": []}
    }
    assert rewards[-1] == 1.0 and set(rewards[:-1]) <= {-0.01}
    assert after["progress"]["submitted_row_indices"] == [0]
    assert verdict(FORM, before, after, volatile=("progress",)).success


def test_what_the_device_changes_by_itself_is_no_side_effect(server, tmp_path):
    """Aeroplane mode takes Wi-Fi along, which is known only once it has happened."""
    (task,) = load_tasks(["train_72_quick_settings_airplane_on"], role=None).tasks
    instance = task.instantiate(0)

    async def run():
        env = pod(server.url, Ledger(tmp_path))
        await env.reset(instance, 0)
        before = await env.state()
        for _ in range(10):
            action = await env.ask_oracle()
            if action.kind == "finish":
                break
            await env.step(action)
        after = await env.state()
        await env.close()
        return verdict(instance, before, after, volatile=env.volatile)

    said = anyio.run(run)
    assert said.success and not said.side_effects


def test_actions_that_the_protocol_lacks_are_rejected_and_never_sent(server, tmp_path):
    async def run():
        env = pod(server.url, Ledger(tmp_path), "pods", template=with_task("desk_dark_style"))
        await env.reset(FORM, 1)
        already = server.fake.counts()["actions"]
        lacking = (
            LongPress(x=1, y=1), Click(x=1, y=1, button="middle"), Click(x=1, y=1, button="right", count=2),
            Scroll(direction="left"), Button(name="home"), Click(x=9999, y=1),
        )  # fmt: skip
        for action in lacking:
            assert (await env.step(action)).info["rejected"]
        for action in (
            Key(keys=("Escape",)),
            TypeText(text="ä & b=c", submit=True),
            Scroll(direction="down", amount=300),
        ):
            await env.step(action)
        await env.close()
        return already

    already = anyio.run(run)
    assert server.fake.counts()["actions"] >= already


def test_sweep_deletes_what_an_environment_left(server, tmp_path):
    ledger = Ledger(tmp_path)

    async def run():
        env = pod(server.url, ledger)
        await env.reset(PHONE, 1)
        assert server.fake.counts()["live"] == 1
        (lease,) = ledger.leases()
        await sweep(lease, Settings(kube_api_url=server.url, kube_token=TOKEN))
        await env.ways.close()

    anyio.run(run)
    assert server.fake.counts()["live"] == 0
    assert ledger.leases() == []


def test_sweep_shows_no_credential_to_another_cluster(server, tmp_path):
    elsewhere = Settings(kube_api_url="http://127.0.0.1:9", kube_token="of-another-cluster")

    async def leave():
        env = pod(server.url, Ledger(tmp_path))
        await env.reset(PHONE, 1)
        return env

    async def run():
        env = await leave()
        (lease,) = Ledger(tmp_path).leases()
        with pytest.raises(EnvError, match=r"the one that is set is at http://127\.0\.0\.1:9"):
            await sweep(lease, elsewhere)
        assert Ledger(tmp_path).leases(), "it stays on record"
        await env.close()

    anyio.run(run)


def test_c40_no_more_than_allowed_are_starting_at_once(tmp_path):
    starting: list[int] = []

    async def run(url):
        limiter = anyio.CapacityLimiter(3)
        pods = Pods(find(Where(url, TOKEN)))
        ways = Ways(pods, None, 8000)
        ledger = Ledger(tmp_path)

        async def episode():
            env = PodEnv(pods, ledger, ways.connect("phone"), OPTIONS, load(), "phone", limiter)
            await env.reset(PHONE, 1)
            starting.append(limiter.borrowed_tokens)
            await env.close()

        async with anyio.create_task_group() as group:
            for _ in range(12):
                group.start_soon(episode)
        await ways.close()

    with cluster(faults=Faults(start_s=0.3)) as server:
        anyio.run(run, server.url)
        counts = server.fake.counts()
    assert max(starting) <= 3
    assert (counts["made"], counts["live"]) == (12, 0)


def test_cancelled_start_leaves_no_pod(tmp_path):
    """Cancelled while the answer to its creation is still out."""

    async def run(server):
        ledger = Ledger(tmp_path)
        env = pod(server.url, ledger)
        with anyio.move_on_after(0.5):
            await env.reset(PHONE, 1)
        await env.close()
        assert ledger.leases() == []

    with cluster(faults=Faults(start_s=1e6)) as server:
        anyio.run(partial(run, server))
        assert server.fake.counts()["live"] == 0
