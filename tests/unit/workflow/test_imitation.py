"""What supervised training imitates, from a store with episodes of one's own making."""

import time
from collections import Counter

import pytest

from cuarl.errors import ConfigError
from cuarl.store import Store
from cuarl.store.records import HumanVerdict
from cuarl.trajectory import Sampled
from cuarl.workflow.imitation import Imitation
from cuarl.workflow.players import scripted
from cuarl.workflow.rollouts import collect
from tests.unit.workflow.switch import TASKS, experiment

SAMPLED = Sampled(prompt_ids=(1, 2), token_ids=(3,), logprobs=(-0.1,))


@pytest.fixture
def store(tmp_path):
    with Store.open(f"sqlite:///{tmp_path}/runs/cuarl.db", runs_dir=tmp_path / "runs") as store:
        yield store


@pytest.fixture
def shown(tmp_path, store):
    """The name of a run with an episode of each task, of which that of lamp_off succeeds, and both say how they were
    sampled."""
    (tmp_path / "runs").mkdir(exist_ok=True)
    run, trajectories = collect(experiment(tmp_path, max_turns=2), TASKS, 1, scripted("nothing"))
    for t in trajectories:
        turns = tuple(turn.model_copy(update={"sampled": SAMPLED}) for turn in t.turns)
        store.enqueue(
            t.model_copy(update={"turns": turns, "reward": float(t.success), "episode_id": f"{t.episode_id}x"})
        )
    store.drain()
    return run.name


def imitation(tmp_path, store, shown, ids=(3,), **fields):
    asked = experiment(tmp_path, algorithm="sft", sft_runs=[shown], groups_per_batch=2, group_size=3, **fields)
    return Imitation(asked.config, store, tmp_path / "runs", encode=lambda text: ids)


@pytest.mark.anyio
async def test_each_step_takes_its_share_and_every_episode_comes_as_often(tmp_path, store, shown):
    found = imitation(tmp_path, store, shown, sft_min_reward=-1.0)
    assert len(found.ids) == 2, "those without token ids are left out"
    batches = [await found(step, 0) for step in (1, 2)]
    assert [len(batch.groups) for batch in batches] == [6, 6]
    assert set(Counter(g.task_id for batch in batches for g in batch.groups).values()) == {6}
    again = await imitation(tmp_path, store, shown, sft_min_reward=-1.0)(2, 0)
    assert [g.group_id for g in again.groups] == [g.group_id for g in batches[1].groups]


def test_ids_of_another_tokenizer_are_not_imitated(tmp_path, store, shown):
    with pytest.raises(ConfigError, match="token ids of another model than tiny"):
        imitation(tmp_path, store, shown, ids=(4,), sft_min_reward=-1.0)
    assert imitation(tmp_path, store, shown, ids=(3, 0), sft_min_reward=-1.0).ids, "cut off before its end"


@pytest.mark.anyio
async def test_only_what_was_rewarded_enough_is_imitated(tmp_path, store, shown):
    found = imitation(tmp_path, store, shown, sft_min_reward=1.0)
    assert {g.task_id for g in (await found(1, 0)).groups} == {"lamp_off"}


def kept(store, shown, turns, agent, **info):
    """An episode like the successful one of ``shown``, of other turns."""
    (like,) = (t for t in store.trajectories() if t.episode_id.endswith("x") and t.reward == 1.0)
    one = like.turns[0]
    made = [one.model_copy(update={"index": i, **update}) for i, update in enumerate(turns)]
    name = agent.partition(":")[0]
    found = like.model_copy(
        update={"turns": tuple(made), "agent": agent, "info": info, "episode_id": f"{like.episode_id}-{name}"}
    )
    store.enqueue(found)
    store.drain()
    return found.episode_id


@pytest.mark.anyio
async def test_of_a_corrected_policy_only_the_corrections_are_imitated_and_sources_have_weights(tmp_path, store, shown):
    written = SAMPLED.model_copy(update={"logprobs": None})
    turns = [{}, {"sampled": written}, {"sampled": written, "rejected": "no such key"}, {}]
    decisions = {str(i): {"by": "human"} for i in (1, 2)}
    corrected = kept(store, shown, turns, "assisted:qwen", decisions=decisions)
    by_hand = kept(store, shown, turns[1:3], "human:qwen")
    left_alone = kept(store, shown, turns[:1], "assisted-not:qwen")
    kept(store, shown, [{}], "oracle:qwen")
    found = imitation(tmp_path, store, shown, sft_weights=["human=2", "corrected=4", "plan=0"])
    batch = await found(1, 0)
    turns_of = {g.trajectories[0].episode_id: [t.index for t in g.trajectories[0].turns] for g in batch.groups}
    assert turns_of[corrected] == [1], "neither what the policy did nor what was rejected"
    assert turns_of[by_hand] == [0]
    assert batch.importance[corrected] == 4.0 and batch.importance[by_hand] == 2.0
    assert batch.importance[left_alone] == 1.0 and not any(i.endswith("-oracle") for i in found.ids)


@pytest.mark.parametrize(("given", "says"), [("humam=2", 'did you mean "human"'), ("human", "has no weight")])
def test_a_weight_that_says_nothing_is_refused(tmp_path, given, says):
    with pytest.raises(ConfigError, match=says):
        experiment(tmp_path, algorithm="sft", sft_runs=["a"], sft_weights=[given])


def test_nothing_to_imitate_is_said_before_a_step(tmp_path, store, shown):
    with pytest.raises(ConfigError, match="none of the 4 episodes can be imitated"):
        imitation(tmp_path, store, shown, sft_min_reward=2.0)


def test_a_persons_verdict_wins_over_the_reward_and_one_after_the_runs_start_does_not_count(tmp_path, store, shown):
    off, on = (next(e for e in store.episode_ids(task=task) if e.endswith("x")) for task in ("lamp_off", "lamp_on"))
    assert imitation(tmp_path, store, shown, sft_min_reward=1.0).ids == [off]
    before = time.time()
    said = [store.save_human_verdict(HumanVerdict(episode_id=i, success=s)) for i, s in ((off, False), (on, True))]
    assert imitation(tmp_path, store, shown, sft_min_reward=1.0).ids == [on]
    asked = experiment(tmp_path, algorithm="sft", sft_runs=[shown], sft_min_reward=1.0)
    resumed = Imitation(asked.config, store, tmp_path / "runs", encode=lambda text: (3,), judged_until=before)
    assert resumed.ids == [off] and all(v.at >= before for v in said)
