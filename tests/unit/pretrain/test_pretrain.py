"""Pre-training of the shipped base: its fast forward, its data and its schedule."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from transformers import PreTrainedTokenizerFast, Qwen2VLImageProcessorPil

from cuarl.agent import formats
from cuarl.agent.formats.base import Size
from cuarl.policy.qwen_vl.images import ImageProcessor
from cuarl.pretrain import skills
from cuarl.pretrain.architecture import Shape, build_model, image_processor_config
from cuarl.pretrain.dialogues import DialogueMaker, Tokens, screen_of
from cuarl.pretrain.pretrain import Plan, Trainee, patches_of
from cuarl.pretrain.screens import picture, random_world
from cuarl.pretrain.tokenizer import build_tokenizer
from cuarl.types import Click, Screenshot

SYSTEM = "Use the tool."
SMALL = Shape(width=64, layers=2, heads=2, kv_heads=1, mlp=96, vision_width=48, vision_layers=3, vision_mlp=64)


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    return build_tokenizer(["Tap Wi-Fi.", "Find it."] * 5, system_prompts=[SYSTEM], tools=["mobile_use"])


def test_patches_equal_the_image_processors() -> None:
    screens = [picture(random_world(random.Random(i))) for i in range(2)]
    ours = patches_of(torch.from_numpy(np.stack([np.asarray(s) for s in screens])))
    processor = ImageProcessor(Qwen2VLImageProcessorPil(**image_processor_config()))
    assert torch.allclose(ours, processor.patches([Screenshot(s) for s in screens]), atol=1e-6)


def test_fast_forward_equals_transformers(tokenizer: PreTrainedTokenizerFast) -> None:
    model = build_model(tokenizer, SMALL, seed=1).eval()
    worlds = [random_world(random.Random(i)) for i in range(2)]
    pictures = [picture(w) for w in worlds]
    screens = torch.from_numpy(np.stack([np.asarray(p) for p in pictures]))
    given = Qwen2VLImageProcessorPil(**image_processor_config())(pictures, return_tensors="pt")
    tokens = Tokens(tokenizer.backend_tokenizer, SYSTEM, 192, 384)
    ids = torch.tensor([tokens.prompt("Tap Wi-Fi.")] * 2)
    with torch.no_grad():
        theirs = model(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            **given,
            mm_token_type_ids=(ids == model.config.image_token_id).long(),
        ).logits
        trainee = Trainee(model, 384, 192)
        ours = trainee.logits(trainee.hidden(screens, ids))
    assert (ours - theirs).abs().max() < 1e-4


def test_rounds_tap_inside_what_they_name() -> None:
    parser = formats.get("qwen3-vl")
    for seed in range(20):
        rng = random.Random(seed)
        screen = screen_of(random_world(rng))
        for r in skills.rounds(rng, screen, 8):
            parsed = parser.parse(r.call, Size(screen.width, screen.height))
            assert parsed.action is not None, r.call
            assert not parsed.warnings
            if r.box and isinstance(parsed.action, Click):
                x0, y0, x1, y1 = r.box
                assert x0 <= parsed.action.x < x1
                assert y0 <= parsed.action.y < y1


def test_telltales_fade_and_the_rate_falls() -> None:
    plan = Plan(steps=1000, warmup=10, telltale_until=0.2, faded_by=0.5)
    assert [plan.telltale(s) for s in (0, 200, 350, 500, 900)] == pytest.approx([1, 1, 0.5, 0, 0])
    assert plan.rate(0) < plan.rate(9) == pytest.approx(plan.learning_rate)
    assert plan.rate(999) == pytest.approx(plan.learning_rate * 0.05, rel=1e-2)


def test_forbidden_requests_are_left_out() -> None:
    screen = screen_of(random_world(random.Random(3)))
    free = DialogueMaker("", SYSTEM).rounds(random.Random(5), screen, soft=True)
    goal = free[0].request.casefold().rstrip(".")
    bound = DialogueMaker("", SYSTEM, forbidden=frozenset({goal})).rounds(random.Random(5), screen, soft=True)
    assert [r for r in free if r.request.casefold().rstrip(".") != goal] == bound
    assert len(bound) < len(free)


def test_soft_rounds_end_where_a_switch_is_as_said() -> None:
    on = skills.Fact("Captions", (0, 40, 192, 72), checked=True)
    screen = skills.Screen(192, 384, (on,), lambda name: on, ("Captions",))
    always = skills.Softness(held=1.0, finish=0.0)
    for seed in range(200):
        rng = random.Random(seed)
        for r in skills.soft_rounds(rng, screen, 6, always):
            if r.skill == "soft":
                said = {w.rstrip(".") for w in r.request.split()} & set(skills.STATES)
                assert (r.call == skills.finish()) == (said == {"on"}), r.request
