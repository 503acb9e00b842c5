"""Pre-training of the shipped base: its fast forward, its data and its schedule."""

from __future__ import annotations

import random
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from transformers import PreTrainedTokenizerFast, Qwen2VLImageProcessorPil

from cuarl.agent import formats
from cuarl.agent.formats.base import Size
from cuarl.agent.prompt import Shown, build_messages
from cuarl.policy.qwen_vl.images import ImageProcessor
from cuarl.policy.qwen_vl.render import QwenRenderer
from cuarl.policy.qwen_vl.special import special_ids
from cuarl.policy.sampler import SampledText
from cuarl.pretrain import calls, skills, soft
from cuarl.pretrain.architecture import Shape, build_model, image_processor_config
from cuarl.pretrain.dialogues import DialogueMaker, Tokens, asked_of, letters_of, rows_of
from cuarl.pretrain.facts import Fact, Screen
from cuarl.pretrain.layout import head_of, lay_out
from cuarl.pretrain.letters import LetterHead, marked
from cuarl.pretrain.moments import Moment, moment
from cuarl.pretrain.plan import Plan
from cuarl.pretrain.pretrain import Pretraining
from cuarl.pretrain.tokenizer import build_tokenizer
from cuarl.pretrain.trainee import Trainee, patches_of
from cuarl.pretrain.words import held_out, title, word
from cuarl.types import Click, Screenshot

SYSTEM = "Use the tool."
CELLS = 288
"""Image tokens of a phone's screen."""
SMALL = Shape(width=64, layers=2, heads=2, kv_heads=1, mlp=96, vision_width=48, vision_layers=3, vision_mlp=64)
PAST = (calls.press("Home"), calls.open_app("Notes"))


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return build_tokenizer(["Tap Wi-Fi.", "Find it."] * 5, system_prompts=[SYSTEM], tools=["mobile_use"])


@pytest.fixture(scope="module")
def folder(tokenizer: PreTrainedTokenizerFast, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tokenizer")
    tokenizer.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def moments() -> list[Moment]:
    return [moment(random.Random(i), "phone") for i in range(2)]


def _screens(moments: list[Moment]) -> torch.Tensor:
    return torch.from_numpy(np.stack([m.picture for m in moments]))


def _images() -> ImageProcessor:
    return ImageProcessor(Qwen2VLImageProcessorPil(**image_processor_config()))


def test_patches_equal_the_image_processors(moments: list[Moment]) -> None:
    shots = [Screenshot(Image.fromarray(m.picture)) for m in moments]
    assert torch.allclose(patches_of(_screens(moments), 8, 2), _images().patches(shots), atol=1e-6)


def test_prompts_are_those_of_rollouts(tokenizer: PreTrainedTokenizerFast, moments: list[Moment]) -> None:
    shot = Screenshot(Image.fromarray(moments[0].picture))
    model = build_model(tokenizer, SMALL)
    renderer = QwenRenderer(tokenizer, _images(), special_ids(model.config, model.generation_config, tokenizer))
    tokens = Tokens(tokenizer.backend_tokenizer, SYSTEM, CELLS)
    plain = renderer.render(build_messages("Tap Wi-Fi.", [shot], [], system=SYSTEM, shown=Shown(0, 0)))
    assert tuple(tokens.prompt("Tap Wi-Fi.")) == plain.ids
    answers = [SampledText(said, None) for said in PAST]
    told = renderer.render(build_messages("Find it.", [shot] * 3, answers, system=SYSTEM, shown=Shown(2, 0)))
    assert tuple(tokens.asked_whole(skills.Round("Find it.", "", "", past=PAST))) == told.ids


def test_rounds_and_whole_prompts_equal_transformers(tokenizer: PreTrainedTokenizerFast, moments: list[Moment]) -> None:
    model = build_model(tokenizer, SMALL, seed=1).eval()
    given = Qwen2VLImageProcessorPil(**image_processor_config())(
        [Image.fromarray(m.picture) for m in moments], return_tensors="pt"
    )
    tokens = Tokens(tokenizer.backend_tokenizer, SYSTEM, CELLS)
    asked, other = tokens.asked("Tap Wi-Fi."), tokens.asked("Find it at 510, 20.")
    ids = torch.tensor([[*tokens.head, *asked]] * 2)
    past = torch.tensor([tokens.asked_whole(skills.Round("Find it.", "", "", past=PAST))] * 2)

    def theirs(ids: torch.Tensor) -> torch.Tensor:
        is_image = (ids == model.config.image_token_id).long()
        logits: torch.Tensor = model(
            input_ids=ids, attention_mask=torch.ones_like(ids), **given, mm_token_type_ids=is_image
        ).logits
        return logits

    with torch.no_grad():
        trainee = Trainee(model)
        seen = trainee.see(_screens(moments))
        follow = trainee.logits(trainee.follow(trainee.prompts(seen, tokens.head), torch.tensor([asked] * 2)))
        whole = trainee.logits(trainee.whole(seen, past, torch.tensor([0, 1])))
        every = [1] * len(asked)
        made = asked_of([[(other, [0] * len(other)), (asked, every)], [(asked, every)]])
        layout = lay_out(
            head_of(tokens.head, trainee.grid(384, 192), trainee.image_id),
            made,
            rows_of([(past[0].tolist(), [0] * 20 + [1] * (past.shape[1] - 20), 1)]),
            trainee.image_id,
        ).to(torch.device("cpu"))
        states = trainee.logits(trainee.states(seen, layout))
        right, right_past = theirs(ids)[:, len(tokens.head) - 1 : -1], theirs(past)
        assert (follow - theirs(ids)[:, len(tokens.head) :]).abs().max() < 2e-4
        assert (whole - right_past).abs().max() < 2e-4
        # a round follows on the picture as if there were no other; its first token is learnt from nothing
        first, second, last = states.split([len(asked), len(asked), past.shape[1] - 20])
        assert (first[1:] - right[0, 1:]).abs().max() < 2e-4
        assert (second[1:] - right[1, 1:]).abs().max() < 2e-4
        assert (last - right_past[1, 19:-1]).abs().max() < 2e-4


@pytest.mark.parametrize("kind", ["phone", "desktop"])
def test_rounds_are_calls_that_hit_what_they_name(kind: calls.Kind) -> None:
    parser = formats.get("qwen3-vl", kind)
    for seed in range(12):
        rng = random.Random(seed)
        screen = moment(rng, kind, ways=seed % 3 == 0).screen
        past = [r for _ in range(4) if (r := skills.with_past(rng, screen))]
        for r in (*skills.rounds(rng, screen, 12), *past):
            parsed = parser.parse(r.call, Size(*screen.size))
            assert parsed.action is not None, r.call
            assert not parsed.warnings
            if r.box and isinstance(parsed.action, Click):
                x0, y0, x1, y1 = r.box
                assert x0 <= parsed.action.x < x1, r
                assert y0 <= parsed.action.y < y1, r


def test_letters_are_where_they_are_drawn(moments: list[Moment]) -> None:
    """Around each letter's middle there is ink: pixels that differ from those beside the line."""
    found = letters_of(moments[:1])
    picture = moments[0].picture.astype(int)
    inked = 0
    for x, y in zip(found.x, found.y, strict=True):
        around = picture[y - 4 : y + 5, max(0, x - 3) : x + 4].reshape(-1, 3)
        inked += bool(np.abs(around - around[0]).max() > 60)
    assert len(found.x) > 20
    assert inked / len(found.x) > 0.95


def test_letters_are_learnt_from_the_features_of_their_tokens(
    tokenizer: PreTrainedTokenizerFast, moments: list[Moment]
) -> None:
    at = marked(letters_of(moments), (5, 9), (384, 192), 16, torch.device("cpu"))
    features = torch.eye(int(at.tokens.max()) + 1)
    head = LetterHead(len(features), 16)
    optimiser = torch.optim.Adam(head.parameters(), lr=0.1)
    for _ in range(40):
        loss, right = head(features, at)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    # every letter has a slot of its own, so that naming them all can be learnt by heart
    assert right > 0.97


def test_a_batch_lowers_the_loss(folder: Path, tokenizer: PreTrainedTokenizerFast) -> None:
    make = DialogueMaker(str(folder), {"phone": SYSTEM, "desktop": SYSTEM}, sets=1, past_share=1.0)
    tokens = Tokens(tokenizer.backend_tokenizer, SYSTEM, CELLS)
    plan = Plan(steps=100, warmup=1, letters_until=0.02, repeats=1)
    run = Pretraining(build_model(tokenizer, SMALL), plan, {"phone": tokens.head}, "cpu")
    data = run.batches(make)(0, 2, "phone", 0.5)
    assert run.learn(data, 0.0).keys() == {"loss", "letters"}
    run.learn(data, 0.03)
    assert not run.lettering
    first = run.learn(data, 0.03)
    again = Pretraining(build_model(tokenizer, SMALL, seed=5), plan, {"phone": tokens.head}, "cpu")
    again.restore(deepcopy(run.state()))
    for _ in range(3):
        last = run.learn(data, 0.03)
    assert float(last["answers"]) < float(first["answers"])
    for _ in range(3):
        resumed = again.learn(data, 0.03)
    assert float(resumed["answers"]) == pytest.approx(float(last["answers"]), rel=1e-4)


def test_the_rate_rises_and_falls() -> None:
    plan = Plan(warmup=10)
    assert plan.rate(0, 0.0) < plan.rate(9, 0.2) == pytest.approx(plan.learning_rate)
    assert plan.rate(999, 1.0) == pytest.approx(plan.learning_rate * 0.02, rel=1e-2)
    assert [plan.softness(d) for d in (0.5, 0.75, 0.9)] == pytest.approx([0, plan.soft / 2, plan.soft])


def test_forbidden_requests_are_left_out(folder: Path) -> None:
    prompts: dict[calls.Kind, str] = {"phone": SYSTEM, "desktop": SYSTEM}
    free = DialogueMaker(str(folder), prompts)(3, 1, "phone", 0.5)
    screen = skills.Round("Go back.", calls.press("Back"), "button")
    bound = DialogueMaker(str(folder), prompts, forbidden=frozenset({"go back"}))
    assert not bound.may(screen)
    assert len(free.rounds[0].ids)


def test_held_out_words_never_occur_in_training() -> None:
    rng = random.Random(0)
    assert not any(held_out(word(rng)) for _ in range(400))
    assert all(held_out(w) for _ in range(40) for w in title(rng, unseen=True).split())


def test_soft_rounds_end_where_a_switch_is_as_said() -> None:
    on = Fact("Captions", (0, 40, 192, 72), checked=True)
    screen = Screen(192, 384, (on,), lambda name: on, ("Captions",))
    always = soft.Softness(held=1.0, finish=0.0)
    for seed in range(200):
        rng = random.Random(seed)
        for r in soft.soft_rounds(rng, screen, 6, always, 0.8):
            if r.skill == "soft":
                said = {w.rstrip(".") for w in r.request.split()} & set(skills.STATES)
                assert (r.call == calls.finish("phone")) == (said == {"on"}), r.request
