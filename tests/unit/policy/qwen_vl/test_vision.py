import copy

import pytest
import torch

from cuarl.policy.qwen_vl import tower, vision
from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.qwen_vl.vision import FeatureCache
from tests.unit.policy.pictures import screen


def _reference(policy: QwenVLPolicy, *shots: object) -> torch.Tensor:
    """Features by the tower with transformers' own forward passes, one picture at a time, every frame given."""
    visual = policy.vision.visual
    outputs = []
    patched = {m: m.__dict__.pop("forward") for m in visual.modules() if "forward" in m.__dict__}
    assert patched, "nothing is replaced, so nothing is compared"
    try:
        for s in shots:
            g = policy.images.grid(s.width, s.height)  # type: ignore[attr-defined]
            pixels = policy.images.patches([s]).view(-1, 3, 1, policy.images.patch**2)  # type: ignore[list-item]
            pixels = pixels.expand(-1, -1, policy.images.frames, -1).reshape(len(pixels), -1)
            with torch.no_grad():
                out = visual(pixels, grid_thw=torch.tensor([[1, g.rows, g.cols]]))
            deep = getattr(out, "deepstack_features", None) or ()
            outputs.append(torch.stack([out.pooler_output, *deep]))
    finally:
        for m, forward in patched.items():
            m.__dict__["forward"] = forward
    return torch.cat(outputs, dim=1)


@pytest.mark.parametrize("sizes", [[(96, 64), (96, 64)], [(96, 64), (180, 120), (64, 64)]], ids=["equal", "mixed"])
def test_features_equal_those_of_transformers(policy: QwenVLPolicy, sizes: list[tuple[int, int]]) -> None:
    shots = [screen(i, *size) for i, size in enumerate(sizes)]
    features = policy.vision.features(shots)
    assert (features - _reference(policy, *shots)).abs().max() < 3e-5


def test_an_adapted_tower_still_takes_every_frame(policy: QwenVLPolicy) -> None:
    stills = policy.images.patches([screen(1)])
    frames = stills.view(-1, 3, 1, policy.images.patch**2).expand(-1, -1, policy.images.frames, -1)
    grid = policy.images.grid(64, 96)
    with torch.no_grad():
        whole = policy.vision.encode(frames.reshape(len(stills), -1), [grid])
    assert (whole - policy.vision.features([screen(1)])).abs().max() < 3e-5


def test_a_screenshot_is_encoded_once_however_often_it_is_shown(policy: QwenVLPolicy) -> None:
    policy.forget_pictures()
    policy.vision.encoded = 0
    first = policy.vision.features([screen(1), screen(2), screen(1)])
    again = policy.vision.features([screen(2), screen(1)])
    assert policy.vision.encoded == 2
    tokens = policy.images.grid(64, 96).tokens
    assert torch.equal(first[:, :tokens], first[:, -tokens:])
    assert torch.equal(again, torch.cat([first[:, tokens : 2 * tokens], first[:, :tokens]], dim=1))


@pytest.mark.parametrize("small", [True, False], ids=["in lanes", "by all threads"])
@pytest.mark.usefixtures("two_lanes")
def test_features_do_not_depend_on_what_is_encoded_beside(
    policy: QwenVLPolicy, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not small:
        monkeypatch.setattr(vision, "_SMALL", 0)
    shots = [screen(i, *size) for i, size in enumerate([(96, 64), (180, 120), (64, 64), (96, 64), (256, 160)])]
    policy.forget_pictures()
    together = policy.vision.features(shots)
    alone: list[torch.Tensor] = []
    for shot in shots:
        policy.forget_pictures()
        alone.append(policy.vision.features([shot]))
    assert torch.equal(together, torch.cat(alone, dim=1))


def test_pictures_of_a_step_are_forgotten_and_those_before_it_known_again(qwen3: QwenVLPolicy) -> None:
    qwen3.recall_pictures()
    qwen3.vision.features([screen(71)])
    qwen3.forget_pictures()
    qwen3.vision.encoded = 0
    qwen3.vision.features([screen(71), screen(72)])
    assert qwen3.vision.encoded == 2, "nothing is known in a step, so that it counts alike after a resume"
    qwen3.recall_pictures()
    qwen3.vision.features([screen(71), screen(72)])
    assert qwen3.vision.encoded == 3


def test_only_towers_that_are_known_are_taken_apart(qwen3: QwenVLPolicy, qwen25: QwenVLPolicy) -> None:
    assert tower.fits(qwen3.vision.visual) and not tower.fits(qwen25.vision.visual)
    changed = copy.deepcopy(qwen3.vision.visual)
    changed.blocks[1].attn.qkv = torch.nn.Sequential(changed.blocks[1].attn.qkv)
    assert not tower.fits(changed)


def test_the_cache_forgets_what_was_not_used_for_longest() -> None:
    cache = FeatureCache(limit_bytes=2 * 4 * 10)
    for name in "ab":
        cache.put(name, torch.zeros(10))
    assert cache.get("a") is not None
    cache.put("c", torch.zeros(10))
    assert cache.get("b") is None and cache.get("a") is not None and cache.get("c") is not None
    cache.put("d", torch.zeros(1000))
    assert len(cache) == 1, "the newest stays even if it alone is over the limit"
