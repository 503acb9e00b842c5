"""Turns that extend one another, computed as one sequence."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cuarl.agent.prompt import Window, build_messages
from cuarl.policy.generic.policy import GenericPolicy
from cuarl.policy.inputs import Row
from cuarl.policy.load import load_policy
from cuarl.policy.packing import SampledTurn, hosts
from cuarl.policy.prompt import Prompt
from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.sampler import SampledText
from cuarl.policy.score import Scorer, Scores
from cuarl.policy.spec import LoraSpec, ModelSpec
from tests.unit.policy.checkpointing import compute_layers_again
from tests.unit.policy.other_families import NAMES, save_family
from tests.unit.policy.pictures import prompt, screen

ALL = Window(history_images=9, history_turns=9)
ANSWERS = [(40, 41, 42), (50,), (60, 61, 62, 63), (44, 45)]


def episode(
    policy: QwenVLPolicy, seed: int, answers: list[tuple[int, ...]] = ANSWERS, window: Window = ALL, ends: bool = True
) -> list[Row]:
    """The turns of an episode with screens of two sizes, each answer in the prompts behind it."""
    screens, said, rows = [], [], []
    for i, words in enumerate(answers):
        screens.append(screen(seed + i, 64, 96 + 64 * (i % 2)))
        made = policy.render(build_messages("turn on wifi", screens, said, system="You act.", shown=window.widest(i)))
        assert isinstance(made, Prompt)
        ids = (*words, policy.special.end_of_turn) if ends else words
        rows.append(Row(*made, answer_ids=ids))
        said.append(SampledText("", ids))
    return rows


def said(rows: list[Row]) -> list[SampledTurn]:
    return [SampledTurn(r.prompt_ids, tuple(s.digest for s in r.screenshots), r.answer_ids) for r in rows]


def score(policy: QwenVLPolicy, rows: list[Row], **how: object) -> Scores:
    with torch.no_grad():
        return Scorer(policy).eval()(policy.collate(rows, **how))  # type: ignore[arg-type]


def difference(a: Scores, b: Scores) -> float:
    return max((x - y).abs().max().item() for x, y in ((a.logprobs, b.logprobs), (a.entropy, b.entropy)))


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("ends", [True, False], ids=["ended", "cut off"])
def test_an_episode_whose_turns_extend_one_another_is_one_sequence_with_the_same_scores(
    policy: QwenVLPolicy, side: str, ends: bool
) -> None:
    rows = episode(policy, 1, ends=ends)
    packed = policy.collate(rows, pack=True)
    assert len(packed.prompt_ids) == 1 and packed.packed is not None
    assert len(packed.prompt_ids[0]) == len(rows[-1].prompt_ids)
    assert difference(score(policy, rows, pack=True, padding=side), score(policy, rows)) < 1e-5


def test_attempts_of_several_lengths_in_any_order_with_turns_that_stand_alone(policy: QwenVLPolicy) -> None:
    """What a group gives: a common first prompt, equal first answers, different lengths; and episodes without
    history."""
    rows = [
        *episode(policy, 1),
        *episode(policy, 1, ANSWERS[:1]),
        *episode(policy, 1, [ANSWERS[0], (70, 71)]),
        *episode(policy, 30, ANSWERS[:3]),
        *episode(policy, 50, window=Window()),
    ]
    torch.manual_seed(0)
    rows = [rows[i] for i in torch.randperm(len(rows)).tolist()]
    inputs = policy.collate(rows, pack=True)
    assert len(inputs.prompt_ids) == 3 + 4, "three chains and four prompts without history"
    assert difference(score(policy, rows, pack=True), score(policy, rows)) < 1e-5
    assert inputs.answer_ids[inputs.answer_mask].tolist() == [t for r in rows for t in r.answer_ids]


def test_a_sliding_window_extends_nothing_and_is_left_as_it_is(policy: QwenVLPolicy) -> None:
    rows = episode(policy, 1, window=Window(history_images=2, history_turns=1))[1:]
    assert policy.collate(rows, pack=True).packed is None
    assert torch.equal(score(policy, rows, pack=True).logprobs, score(policy, rows).logprobs)


def test_other_pictures_at_the_same_place_are_another_past(policy: QwenVLPolicy) -> None:
    first, other = episode(policy, 1), episode(policy, 20)
    assert first[1].prompt_ids == other[1].prompt_ids
    rows = [first[0], other[1]]
    assert hosts(said(rows)) == [None, None]
    assert difference(score(policy, rows, pack=True), score(policy, rows)) == 0


def gradients(policy: QwenVLPolicy, rows: list[Row], *, pack: bool, setting: Callable[[], None]) -> torch.Tensor:
    policy.model.zero_grad()
    policy.model.train()
    setting()
    scores = Scorer(policy).train()(policy.collate(rows, pack=pack), with_hidden=True)
    weights = torch.linspace(-1, 1, int((scores.logprobs != 0).sum()))
    assert scores.hidden is not None
    loss = (scores.logprobs[scores.logprobs != 0] * weights).sum() + 0.1 * scores.entropy.sum()
    (loss + (scores.hidden * weights[:, None]).sum() / 100).backward()
    return torch.cat([p.grad.flatten() for p in policy.parameters() if p.grad is not None])


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("twice", [False, True], ids=["own prompts", "shared prompts"])
def test_gradients_are_those_of_separate_sequences(adapted: QwenVLPolicy, checkpointing: bool, twice: bool) -> None:
    rows = [*episode(adapted, 1), *episode(adapted, 30, ANSWERS[:2])]
    if twice:
        last = rows[3]
        rows += [Row(last.prompt_ids, last.screenshots, (80, 81)), *rows[:3]]

    def setting() -> None:
        if checkpointing:
            compute_layers_again(adapted.base)

    apart = gradients(adapted, rows, pack=False, setting=setting)
    together = gradients(adapted, rows, pack=True, setting=setting)
    assert apart.abs().max() > 1e-2
    assert (together - apart).abs().max() < 1e-5 * max(1.0, apart.abs().max().item())


def chain(policy: QwenVLPolicy, seed: int, answers: list[tuple[int, ...]]) -> list[Row]:
    """Turns that extend one another whatever the chat template makes of past answers."""
    rows: list[Row] = []
    for i, words in enumerate(answers):
        last, new = rows[-1:], prompt(policy, "go on", screen(seed + i, 64, 96 + 64 * (i % 2)))
        past = [(*r.prompt_ids, *r.answer_ids) for r in last]
        shown = [s for r in last for s in r.screenshots]
        rows.append(Row((*sum(past, ()), *new.ids), (*shown, *new.screenshots), words))
    return rows


@pytest.fixture(scope="module", params=NAMES)
def plain(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> GenericPolicy:
    folder = save_family(request.param, tmp_path_factory.mktemp(request.param))
    policy = load_policy(ModelSpec(model=str(folder), lora=LoraSpec(rank=4), train="adapter"))
    assert isinstance(policy, GenericPolicy)
    return policy


@pytest.mark.parametrize("side", ["left", "right"])
def test_any_other_family_packs_too(plain: GenericPolicy, side: str) -> None:
    rows = [*chain(plain, 1, ANSWERS), *chain(plain, 30, ANSWERS[:2]), *chain(plain, 30, ANSWERS[:1])]
    assert len(plain.collate(rows, pack=True).prompt_ids) == 2
    assert difference(score(plain, rows, pack=True, padding=side), score(plain, rows)) < 1e-5
    apart, together = (gradients(plain, rows, pack=pack, setting=lambda: None) for pack in (False, True))
    assert (together - apart).abs().max() < 1e-5 * max(1.0, apart.abs().max().item())


ids = st.lists(st.integers(1, 2), max_size=4).map(tuple)


@given(
    st.lists(
        st.builds(SampledTurn, ids.map(lambda p: (1, *p)), ids.map(lambda d: tuple(map(str, d[:2]))), ids), max_size=9
    )
)
def test_a_host_begins_with_what_it_hosts_and_has_none_itself(turns: list[SampledTurn]) -> None:
    def extends(a: SampledTurn, b: SampledTurn) -> bool:
        whole = a.prompt + a.answer
        return b.prompt[: len(whole)] == whole and b.pictures[: len(a.pictures)] == a.pictures

    for turn, host in zip(turns, hosts(turns), strict=True):
        if host is None:
            assert not turn.answer or not any(extends(turn, other) for other in turns)
        else:
            assert extends(turn, turns[host])
            assert hosts(turns)[host] is None
