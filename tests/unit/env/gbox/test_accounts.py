"""Boxes of several accounts in one run."""

import anyio
import pytest

pytest.importorskip("uvicorn", reason="the local server needs the extra web")

from cuarl.config.load import resolve
from cuarl.env.gbox.backend import accounts, boxes
from cuarl.env.leases import Ledger, sweep
from cuarl.errors import ConfigError, EnvError, MissingSecret
from cuarl.local.gbox import FakeGBox
from cuarl.local.threads import served
from cuarl.settings import Settings
from cuarl.tasks.task import Task
from cuarl.workflow import environments

KEYS = ("gbox-first-11aa", "gbox-second-22bb")
TASK = Task(id="t", env="phone", description="Go", checks=[{"path": "ui.is_home_screen", "value": True}])


@pytest.fixture
def service():
    """Two accounts behind one address, told apart by their keys."""
    fakes = [FakeGBox(key) for key in KEYS]
    apps = {f"Bearer {key}": fake.app() for key, fake in zip(KEYS, fakes, strict=True)}

    async def app(scope, receive, send):
        headers = dict(scope.get("headers") or ())
        await apps[headers.get(b"authorization", f"Bearer {KEYS[0]}".encode()).decode()](scope, receive, send)

    with served(app) as url:
        yield f"{url}/api/v1", fakes


def running(fake):
    return fake.counts()["live"]


def test_episodes_are_spread_over_the_accounts_and_each_is_ended_where_it_is(service, tmp_path):
    url, fakes = service
    settings = Settings(gbox_api_key=",".join(KEYS), gbox_base_url=url, sessions_dir=tmp_path / "sessions")
    config = resolve(flags={"env": "gbox", "gbox_boxes": 2, "gbox_settle_ms": 1}).config
    made = environments.backend(config, [TASK], settings)
    ledger = Ledger(settings.sessions_folder)

    async def work():
        assert made.concurrent(64) == 4
        await made.start()
        task = TASK.instantiate(0)
        envs = [await made.make_env(task) for _ in range(4)]
        for env in envs:
            await env.reset(task, 0)
        assert [running(fake) for fake in fakes] == [2, 2]
        # the second and the fourth are the second account's, which then has the most room
        for env in (envs[1], envs[3], envs[3]):
            await env.close()
        further = [await made.make_env(task) for _ in range(2)]
        for env in further:
            await env.reset(task, 0)
        assert [running(fake) for fake in fakes] == [2, 2]
        assert not any(key in lease.path.read_text() for lease in ledger.leases() for key in KEYS)
        (theirs,) = {lease.detail["account"] for lease in ledger.leases()} - {accounts(settings)[0].account}
        left = next(lease for lease in ledger.leases() if lease.detail["account"] == theirs)
        with pytest.raises(EnvError, match="key of its account"):
            await sweep(left, settings.model_copy(update={"gbox_api_key": Settings(gbox_api_key=KEYS[0]).gbox_api_key}))
        await sweep(left, settings)
        assert [running(fake) for fake in fakes] == [2, 1]
        for env in (envs[0], envs[2], *further):
            await env.close()
        await made.close()

    anyio.run(work)
    assert [running(fake) for fake in fakes] == [0, 0] and ledger.leases() == []


def test_keys_are_secrets_each_by_itself_and_a_gym_has_boxes_of_one_account(tmp_path):
    several = Settings(gbox_api_key=f"{KEYS[0]}, {KEYS[1]},{KEYS[0]}")
    assert several.gbox_keys == list(KEYS) and set(KEYS) <= set(several.secrets())
    with pytest.raises(ConfigError, match="keys of 2"):
        boxes(several)
    with pytest.raises(MissingSecret):
        accounts(Settings(gbox_api_key=" , "))
    with pytest.raises(ConfigError, match="counts what each account has lent"):
        environments.check(resolve(flags={"env": "gbox", "workers": 2}).config, [TASK], several)
