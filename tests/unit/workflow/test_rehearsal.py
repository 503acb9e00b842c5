"""What is rehearsed beside imitation: the base's own skills, in its own prompts, as much as was asked for."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from cuarl.agent.formats import SYSTEM_PROMPTS
from cuarl.agent.prompt import Shown, build_messages
from cuarl.config.load import resolve
from cuarl.errors import ConfigError
from cuarl.policy.load import load_renderer
from cuarl.policy.spec import ModelSpec
from cuarl.train.batch import Batch
from cuarl.workflow.rehearsal import Rehearsal, check, rehearsing
from tests.unit.train.episodes import group, trajectory


@pytest.fixture(scope="module")
def renderer():
    return load_renderer(ModelSpec(model="tiny"))


def config(**fields):
    return resolve(flags={"algorithm": "sft", "sft_runs": ["a"], **fields}).config


def imitated(*envs, tokens=40):
    return Batch(tuple(group(trajectory(1.0, tuple(range(tokens)), episode=e, env=e), group_id=e) for e in envs), {})


def said(batch):
    return [turn.sampled for g in batch.rehearsal for t in g.trajectories for turn in t.turns]


def wording(batch):
    return [(t.goal, t.turns[0].sampled) for g in batch.rehearsal for t in g.trajectories]


@pytest.mark.anyio
async def test_requests_stand_in_prompts_of_agents_and_every_picture_is_there(renderer):
    with rehearsing(config(rehearsal=0.8), renderer) as rehearsal:
        batch = await rehearsal.added(imitated("phone", "desktop"), 1)
    sizes = set()
    for goal, answer in wording(batch):
        (ref,) = answer.images
        sizes.add((ref.width, ref.height))
        shot = batch.pictures[ref.digest]
        system = SYSTEM_PROMPTS["phone" if ref.height > ref.width else "desktop"]
        asked = renderer.render(build_messages(goal, [shot], [], system=system, shown=Shown(0, 0)))
        assert (answer.prompt_ids, answer.token_ids) == (asked.ids, renderer.encode_answer(answer.text))
        assert shot.digest == ref.digest and type(shot)(shot.image).digest == ref.digest, "the picture that is named"
    assert sizes == {(192, 384), (480, 320)}, "screens of the kinds that are imitated"


@pytest.mark.anyio
async def test_its_share_of_the_trained_tokens_is_what_was_asked_for(renderer):
    for share in (0.25, 0.6):
        with rehearsing(config(rehearsal=share), renderer) as rehearsal:
            batch = await rehearsal.added(imitated("phone", tokens=2000), 1)
        own = sum(len(answer.token_ids) for answer in said(batch))
        last = sum(len(t.turns[0].sampled.token_ids) for t in batch.rehearsal[-1].trajectories)
        assert own / (own + 2000) >= share > (own - last) / (own - last + 2000), "one screen fewer would not do"


@pytest.mark.anyio
async def test_a_step_rehearses_the_same_whoever_draws_it_and_whatever_was_before(renderer):
    with rehearsing(config(rehearsal=0.5), renderer) as alone:
        first, second = [wording(await alone.added(imitated("phone"), step)) for step in (1, 2)]
        make = alone._make
    assert first != second
    with ThreadPoolExecutor(2) as pool:
        ahead = Rehearsal(make, 0.5, 0, pool)
        assert [wording(await ahead.added(imitated("phone"), step)) for step in (1, 2)] == [first, second]
        # of the next step more is wanted than was drawn ahead
        third = wording(await ahead.added(imitated("phone", tokens=900), 3))
    with rehearsing(config(rehearsal=0.5), renderer) as resumed:
        assert wording(await resumed.added(imitated("phone"), 2)) == second
        assert wording(await resumed.added(imitated("phone", tokens=900), 3)) == third


@pytest.mark.anyio
async def test_goals_of_tasks_are_not_asked_for_and_earlier_answers_are_where_a_run_shows_some(renderer):
    from dataclasses import replace

    with rehearsing(config(rehearsal=0.5, history_turns=2), renderer) as rehearsal:
        make = rehearsal._make
        batch = await rehearsal.added(imitated("phone", tokens=300), 1)
    earlier = renderer.encode_answer("(earlier screen)")[:-1]
    shown = [one for one in said(batch) if any(one.prompt_ids[i:][: len(earlier)] == earlier for i in range(900))]
    assert 0 < len(shown) < len(said(batch)) / 2
    plain = make("x", "phone")
    request = plain.rounds[0][0]
    without = replace(make, forbidden=frozenset({request.casefold().rstrip(".")}))("x", "phone")
    assert request in {asked for asked, _ in plain.rounds} and request not in {asked for asked, _ in without.rounds}


def test_only_what_the_base_was_taught_can_be_rehearsed(tmp_path):
    check(config(rehearsal=0.25))
    check(config(model_name=str(tmp_path)))
    with pytest.raises(ConfigError, match="not made by cuarl model build"):
        check(config(rehearsal=0.25, model_name=str(tmp_path)))
    with pytest.raises(ConfigError, match="words of qwen3-vl"):
        check(config(rehearsal=0.25, renderer_name="json"))
    with pytest.raises(ConfigError, match=r"algorithm.rehearsal|rehearsal"):
        resolve(flags={"rehearsal": 0.25})
    with pytest.raises(ConfigError, match="rehearsal"):
        config(rehearsal=1.0)
