"""Other trainers report here as the seeds' own client does: call by call, with the numbers that the answers give."""

import base64
import json
import random

import pytest

from cuarl.errors import ConfigError
from cuarl.store import Store
from cuarl.store.deletion import delete_run
from cuarl.store.ingest import Ingest
from cuarl.types import Click, Finish, StopReason, TypeText
from tests.unit.monitor.web.conftest import asking
from tests.unit.store.samples import picture

pytest.importorskip("starlette")
pytestmark = pytest.mark.anyio
PATH = "/api/ingest/batch"
SHOTS = [picture(shade) for shade in range(3)]
UUID = "0b6f2c1e-6b57-4c3a-9d0e-3a5c1f2e7d90"
TRAINING = {
    "run_name": "areal-1",
    "model_name": "mai-ui-8b",
    "status": "running",
    "total_steps": 4,
    "current_step": 1,
    "start_time": "2026-01-05T10:00:00",
    "group_size": 4,
    "config_json": json.dumps({"gym": "umetrip"}),
    "seed": 7,
}


@pytest.fixture
def store(sqlite_url, tmp_path):
    with Store.open(sqlite_url, f"{tmp_path}/blobs", runs_dir=tmp_path) as opened:
        yield opened


@pytest.fixture
def secret(store):
    return Ingest(store.engine).create_token("phones", at=1.0)[1]


class Trainer:
    """Posts one kind at a time and gives back the number, as the seeds' client does."""

    def __init__(self, client, secret):
        self.client, self.headers = client, {"authorization": f"Bearer {secret}"}

    async def send(self, status=200, **body):
        headers = {**self.headers, "content-type": "application/json"}
        answer = await self.client.post(PATH, content=json.dumps(body), headers=headers)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def one(self, kind, client_id=None, **data):
        item = data if client_id is None else {**data, "client_id": client_id}
        [row] = (await self.send(**{kind: [item]}))[kind]
        assert row["client_id"] == client_id and isinstance(row["id"], int)
        return row["id"]


def data_uri(shot):
    return f"data:image/png;base64,{base64.b64encode(shot.png()).decode()}"


async def episode(trainer, training, step, *, uuid=UUID, **source):
    """A rollout of two turns, as far as before its end; gives the numbers of the rollout and its turns."""
    source = source or {"source_type": "step", "step_id": step}
    task = await trainer.one(
        "tasks", "wifi", task_id="wifi", name="Wi-Fi", description="Turn Wi-Fi on", source_type="gym"
    )
    env = await trainer.one("environments", f"{uuid}:env", env_type="android", status="created", box_type="android")
    about = {"rollout_id": uuid, **source, "env_id": env, "task_id": task, "model_path": "mai-ui-8b"}
    rollout = await trainer.one(
        "rollouts",
        uuid,
        **about,
        is_eval=False,
        group_num=0,
        env_index=1,
        max_turns=20,
        status="running",
        current_phase="env_creation",
        start_time="2026-01-05T10:01:00",
    )
    turns = []
    for n, shot in enumerate(SHOTS[:2]):
        name = f"{uuid}:turn:{n}"
        turn = await trainer.one("turns", name, rollout_id=rollout, turn=n, start_time="2026-01-05T10:01:01+00:00")
        await trainer.one("observations", turn_id=turn, obs_type="screenshot_before", screenshot_uri=data_uri(shot))
        args = {"action_type": "tap", "target": {"element": "switch", "coordinates": [3, 4.4]}}
        if n:
            args = {"action_type": "input", "text": "x <b>"}
        await trainer.one(
            "actions",
            turn_id=turn,
            action_type="action",
            action_json={"name": "action", "args": args, "callId": "c"},
            tokens=[5, 6],
            logprobs=[-0.5, -0.25],
            num_tokens=2,
        )
        again = await trainer.one(
            "turns", name, rollout_id=rollout, turn=n, model_response=f"I tap {n}", turn_time=1.5, reward=0.5
        )
        assert again == turn
        turns.append(turn)
    return about, rollout, turns


async def test_the_seeds_calls_become_a_run_with_an_episode_that_all_pages_show(store, secret):
    async with asking(store) as client:
        trainer = Trainer(client, secret)
        answer = await trainer.send(training=TRAINING)
        assert answer == {"training_id": 1}
        training = answer["training_id"]
        step = await trainer.one(
            "steps", f"step-{training}-3-0", training_id=training, step=3, batch=0, status="running"
        )
        about, rollout, turns = await episode(trainer, training, step)
        [live] = [one for one in store.live() if one.episode_id]
        assert (live.run_id, live.phase, live.data["goal"], len(live.data["turns"])) == (
            "phones~1",
            "creating",
            "Turn Wi-Fi on",
            2,
        )
        assert list(store.trajectories()) == []
        await trainer.one(
            "observations", turn_id=turns[1], obs_type="screenshot_after", screenshot_uri=data_uri(SHOTS[2])
        )
        await trainer.one(
            "validations",
            rollout_id=rollout,
            validator_id=None,
            validation_query="wifi_enabled",
            expected_result="true",
            actual_result="true",
            success=True,
            details_json={"genv_evaluation": {}},
            validation_time="2026-01-05T10:02:00",
        )
        done = {
            "status": "completed",
            "reward": 1.5,
            "task_success": True,
            "agent_reported_success": True,
            "rollout_time": 9.5,
        }
        assert await trainer.one("rollouts", UUID, **about, **done) == rollout
        await trainer.one(
            "steps",
            f"step-{training}-3-0",
            training_id=training,
            step=3,
            status="completed",
            reward_mean=0.5,
            loss=0.1,
            metrics_json=json.dumps({"env/tries": 2, "note": "text"}),
        )
        await trainer.send(training={"run_name": "areal-1", "status": "completed", "end_time": "2026-01-05T11:00:00"})
        [t] = store.trajectories()
        assert (t.run_id, t.step, t.purpose, t.task_id, t.goal, t.reward, t.success, t.attempt) == (
            "phones~1",
            3,
            "train",
            "wifi",
            "Turn Wi-Fi on",
            1.5,
            True,
            1,
        )
        assert [turn.action for turn in t.turns] == [Click(x=3, y=4), TypeText(text="x <b>")]
        assert [turn.screenshot for turn in t.turns] == [SHOTS[0].ref, SHOTS[1].ref]
        assert t.final_screenshot == SHOTS[2].ref and store.blobs.png(SHOTS[0].digest) == SHOTS[0].png()
        assert (t.turns[0].sampled.text, t.turns[0].sampled.logprobs) == ("I tap 0", (-0.5, -0.25))
        assert (t.verdict.checks[0].path, t.verdict.claimed, t.wall_s, t.info["rollout_id"]) == (
            "wifi_enabled",
            True,
            9.5,
            UUID,
        )
        run = store.run("phones~1")
        assert (run.name, run.status, run.seed, run.started_at) == ("areal-1", "completed", 7, 1767607200.0)
        assert run.config["gym"] == "umetrip" and run.config["group_size"] == 4 and run.directory == ""
        assert {m.name: m.value for m in store.metrics("phones~1")} == {
            "reward/mean": 0.5,
            "policy/loss": 0.1,
            "env/tries": 2.0,
        }
        assert store.live() == []
        shown = (await client.get(f"/api/rollouts/phones~rollout-{rollout}")).json()
        assert shown["task_success"] is True and shown["turns"][0]["model_response"] == "I tap 0"
        for page in ("/", "/runs/phones~1", f"/episodes/phones~rollout-{rollout}", "/runs/phones~1/steps/3"):
            assert (await client.get(page)).status_code == 200, page
        moved = await client.get(f"/{training}?project_id=phones")
        assert (moved.status_code, moved.headers["location"]) == (303, "/runs/phones~1")


async def test_evaluations_and_baselines_have_their_rollouts(store, secret):
    async with asking(store) as client:
        trainer = Trainer(client, secret)
        training = (await trainer.send(training=TRAINING))["training_id"]
        for kind, extra in (("baseline", {}), ("eval", {"step": 2})):
            source = await trainer.one(
                f"{kind}s", f"{kind}-{training}", training_id=training, status="running", **extra
            )
            about, _, _ = await episode(
                trainer, training, None, uuid=f"{kind}-uuid", source_type=kind, **{f"{kind}_id": source}
            )
            await trainer.one("rollouts", f"{kind}-uuid", **about, status="failed", error_message="box gone")
            await trainer.one(
                f"{kind}s",
                f"{kind}-{training}",
                training_id=training,
                status="completed",
                success_rate=0.25,
                total_tasks=4,
            )
        found = {e.step: e for e in store.evaluations(run="phones~1")}
        assert sorted(found) == [0, 2] and len({e.suite for e in found.values()}) == 1
        assert found[2].metrics == {"success_rate": 0.25, "n": 4.0} and found[2].status == "completed"
        assert len(store.evaluation_episode_ids(found[2].id)) == 1
        failed = list(store.trajectories())
        assert {(t.stop, t.failure.message, t.reward) for t in failed} == {(StopReason.FAILED, "box gone", None)}


async def test_the_same_again_is_the_same_rows(store, secret):
    async with asking(store) as client:
        trainer = Trainer(client, secret)
        for _ in range(2):
            training = (await trainer.send(training=TRAINING))["training_id"]
            step = await trainer.one("steps", "s", training_id=training, step=1)
            about, _, _ = await episode(trainer, training, step)
            await trainer.one("rollouts", UUID, **about, status="completed")
        ingest = Ingest(store.engine)
        counts = {
            kind: len(ingest.rows(kind))
            for kind in ("training", "steps", "rollouts", "turns", "actions", "observations")
        }
        assert counts == {"training": 1, "steps": 1, "rollouts": 1, "turns": 2, "actions": 2, "observations": 2}
        assert len(list(store.trajectories())) == 1


@pytest.mark.parametrize("kind", ["steps", "evals", "rollouts"])
async def test_a_run_that_was_removed_comes_back_with_what_is_reported_of_it_next(store, secret, kind):
    async with asking(store) as client:
        trainer = Trainer(client, secret)
        training = (await trainer.send(training=TRAINING))["training_id"]
        step = await trainer.one("steps", "s", training_id=training, step=1)
        about, _, _ = await episode(trainer, training, step)
        delete_run(store, "phones~1")
        assert store.runs() == []
        told = {**about, "status": "completed", "client_id": UUID}
        await trainer.send(**{kind: [told if kind == "rollouts" else {"training_id": training, "step": 2}]})
    assert [record.name for record in store.runs()] == ["areal-1"]
    assert len(list(store.trajectories(run="phones~1"))) == (kind == "rollouts")


@pytest.mark.parametrize("tells", [True, False])
async def test_a_run_is_where_it_says_and_where_its_steps_are_if_it_says_nothing(store, secret, tells):
    about = {name: value for name, value in TRAINING.items() if tells or name != "current_step"}
    async with asking(store) as client:
        trainer = Trainer(client, secret)
        training = (await trainer.send(training=about))["training_id"]
        for step in (1, 2):
            await trainer.one("steps", f"s{step}", training_id=training, step=step)
        if tells:
            assert [run.step for run in store.runs()] == [1]
            await trainer.send(training={**TRAINING, "current_step": 2})
            # news of an earlier step, come late
            first = await trainer.one("steps", "s1", training_id=training, step=1, status="completed")
            await episode(trainer, training, first)
    assert [run.step for run in store.runs()] == [2]


async def test_a_batch_of_several_rows_answers_for_each_and_is_kept_whole_or_not_at_all(store, secret):
    async with asking(store) as client:
        trainer = Trainer(client, secret)
        tasks = [{"client_id": name, "task_id": name} for name in "ab"]
        answer = await trainer.send(training=TRAINING, tasks=tasks)
        assert answer == {"training_id": 1, "tasks": [{"client_id": "a", "id": 1}, {"client_id": "b", "id": 2}]}
        bad = [{"client_id": "s", "training_id": 1}, {"client_id": "x", "training_id": 99}]
        said = await trainer.send(400, steps=bad, tasks=[{"client_id": "c"}])
        assert said == {"error": "steps[1].training_id: the project has no row 99 of training"}
        assert len(Ingest(store.engine).rows("tasks")) == 2


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"rolouts": []}, 'there is no kind "rolouts" (did you mean "rollouts"?)'),
        ({"tasks": {}}, "tasks must be a list"),
        ({"tasks": [3]}, "tasks[0] must be an object"),
        ({"training": {}}, "training.run_name must be a text of at most 500 characters"),
        ({"turns": [{"turn": 1}]}, "turns[0].rollout_id is missing"),
        ({"turns": [{"rollout_id": "1"}]}, "turns[0].rollout_id must be the number of a rollouts row"),
        ({"turns": [{"rollout_id": -1}]}, "turns[0].rollout_id must be the number of a rollouts row"),
        ({"rollouts": [{"source_type": "train"}]}, "rollouts[0].source_type must be baseline, eval or step"),
        ({"rollouts": [{"source_type": "eval", "step_id": 1}]}, "rollouts[0].step_id contradicts source_type eval"),
        ({"tasks": [{}] * 2001}, "a batch has at most 2000 rows"),
    ],
)
async def test_what_can_not_be_read_is_told_and_where(store, secret, body, said):
    async with asking(store) as client:
        assert await Trainer(client, secret).send(400, **body) == {"error": said}


async def test_only_a_token_of_the_project_lets_in_and_only_to_its_own_rows(store, secret):
    ingest = Ingest(store.engine)
    other, others = ingest.create_token("cars", at=2.0)
    async with asking(store, token="the-monitors-own") as client:
        for headers in ({}, {"authorization": "Bearer the-monitors-own"}, {"authorization": f"Basic {secret}"}):
            answer = await client.post(PATH, json={"training": TRAINING}, headers=headers)
            assert answer.status_code == 401 and "token" in answer.json()["error"]
        await Trainer(client, secret).send(training=TRAINING)
        said = await Trainer(client, others).send(400, steps=[{"client_id": "s", "training_id": 1}])
        assert "no row 1 of training" in said["error"]
        assert (await Trainer(client, others).send(training=TRAINING)) == {"training_id": 2}
        ingest.revoke(other.id, at=3.0)
        await Trainer(client, others).send(401, training=TRAINING)
        assert (await client.get("/api/trainings")).status_code == 401, "a project's token reads nothing"
    assert [(token.project, token.revoked_at) for token in ingest.tokens()] == [("phones", None), ("cars", 3.0)]
    with pytest.raises(ConfigError, match="no token"):
        ingest.revoke("nope", at=4.0)


async def test_secrets_of_tokens_are_nowhere_stored(store, secret, tmp_path):
    store.close()
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


async def test_a_monitor_that_only_shows_takes_nothing_and_bodies_have_their_limits(store, secret, monkeypatch):
    async with asking(store, read_only=True) as client:
        assert "only shows" in (await Trainer(client, secret).send(403, training=TRAINING))["error"]
    headers = {"authorization": f"Bearer {secret}"}
    monkeypatch.setattr("cuarl.monitor.web.ingest.BODY_BYTES", 3 << 20)
    async with asking(store) as client:
        large = {"tasks": [{"client_id": "a", "description": "x" * (2 << 20)}]}
        assert (await client.post(PATH, json=large, headers=headers)).status_code == 200, "1 MiB is for the other paths"
        assert (await client.post(PATH, json={**large, "y": "x" * (2 << 20)}, headers=headers)).status_code == 413
        assert (await client.post(PATH, content="{}", headers=headers)).status_code == 415
        assert (await client.get(PATH, headers=headers)).status_code == 405


EVIL = [None, True, -1, 1e300, "x\x00", [[]], {"a": [{}]}, "data:image/png;base64,AAAA", "[NaN]", "2026-99-99"]


@pytest.mark.parametrize("value", EVIL, ids=range(len(EVIL)))
async def test_strange_values_are_kept_and_break_no_page(store, secret, value):
    async with asking(store) as client:
        trainer = Trainer(client, secret)
        known = {
            "run_name": "n",
            "client_id": "c",
            "training_id": 1,
            "rollout_id": 1,
            "turn_id": 1,
            "source_type": "step",
            "step_id": 1,
            "task_id": 1,
            "env_id": 1,
            "eval_id": None,
            "baseline_id": None,
            "validator_id": None,
        }
        columns = {
            "training": (
                "status",
                "seed",
                "config_json",
                "start_time",
                "total_steps",
                "current_step",
                "progress_percent",
            ),
            "tasks": ("description", "instruction", "difficulty", "category"),
            "environments": ("env_type", "gbox_id", "box_type"),
            "steps": ("step", "metrics_json", "loss"),
            "evals": ("success_rate", "step", "total_tasks"),
            "rollouts": (
                "reward",
                "errors",
                "max_turns",
                "env_index",
                "group_num",
                "rollout_time",
                "agent_reported_success",
            ),
            "turns": ("turn", "reward", "model_response", "screen_before", "turn_time", "start_time", "thinking"),
            "actions": ("action_json", "tokens", "logprobs", "tool_args", "action_args"),
            "observations": ("screenshot_uri", "obs_type"),
            "validations": ("success", "validation_query", "expected_result"),
        }
        for status in ("running", "completed"):
            for kind, names in columns.items():
                row = {**known, **dict.fromkeys(names, value)}
                row |= {"status": status} if kind == "rollouts" else {}
                row |= {"task_id": "c"} if kind == "tasks" else {}
                await trainer.send(**{kind: row if kind == "training" else [row]})
        [t] = store.trajectories()
        assert t.turns[0].action in (None, Finish())
        for page in ("/", "/runs/phones~1", f"/episodes/{t.episode_id}", "/runs/phones~1/steps/0", "/api/trainings"):
            assert (await client.get(page)).status_code == 200, page


KINDS = (
    "tasks",
    "validators",
    "environments",
    "steps",
    "baselines",
    "evals",
    "rollouts",
    "turns",
    "actions",
    "observations",
    "validations",
)
FIELDS = (
    "client_id",
    "training_id",
    "rollout_id",
    "turn_id",
    "step_id",
    "task_id",
    "env_id",
    "eval_id",
    "baseline_id",
    "status",
    "step_num",
    "source_type",
    "reward",
    "action_type",
    "screenshot_uri",
    "screen_before",
    "metrics_json",
    "turn",
    "success",
    "description",
    "start_time",
)
VALUES = (*EVIL, 0, 1, 2, 10**30, 0.5, "c", "\ud800", "step", "completed", "click", '{"x": 1}', [1], {}, False)


@pytest.mark.parametrize("seed", range(2))
async def test_no_batch_makes_the_server_fail(store, secret, seed):
    rng, found = random.Random(seed), set()

    def row():
        return {name: rng.choice(VALUES) for name in rng.sample(FIELDS, rng.randrange(7))}

    async with asking(store) as client:
        headers = {"authorization": f"Bearer {secret}", "content-type": "application/json"}
        await Trainer(client, secret).send(training=TRAINING)
        for _ in range(200):
            batch = {kind: [row() for _ in range(rng.randrange(3))] for kind in rng.sample(KINDS, 2)}
            batch |= {"training": {"run_name": "areal-1", **row()}} if rng.random() < 0.2 else {}
            batch |= {rng.choice(KINDS): rng.choice(VALUES)} if rng.random() < 0.1 else {}
            answer = await client.post(PATH, content=json.dumps(batch), headers=headers)
            found.add(answer.status_code)
            assert answer.status_code in (200, 400), (batch, answer.text)
        pages = [await client.get(path) for path in ("/", "/episodes", "/evaluations", "/api/trainings")]
    assert found == {200, 400} and [page.status_code for page in pages] == [200] * 4
