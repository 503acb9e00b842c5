import pytest
import torch

from cuarl.policy.qwen_vl.images import Grid
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


def test_a_screenshot_is_encoded_once_however_often_it_is_shown(qwen3: QwenVLPolicy) -> None:
    qwen3.vision.cache.clear()
    encoded = []
    encode = qwen3.vision.encode

    def counting(pixels: torch.Tensor, grids: list[Grid]) -> torch.Tensor:
        encoded.append(len(grids))
        return encode(pixels, grids)

    qwen3.vision.encode = counting  # type: ignore[method-assign,assignment]
    try:
        first = qwen3.vision.features([screen(1), screen(2), screen(1)])
        again = qwen3.vision.features([screen(2), screen(1)])
    finally:
        del qwen3.vision.encode  # type: ignore[method-assign]
    # each by itself, so that no picture's features depend on its company
    assert encoded == [1, 1]
    tokens = qwen3.images.grid(64, 96).tokens
    assert torch.equal(first[:, :tokens], first[:, -tokens:])
    assert torch.equal(again, torch.cat([first[:, tokens : 2 * tokens], first[:, :tokens]], dim=1))


def test_the_cache_forgets_what_was_not_used_for_longest() -> None:
    cache = FeatureCache(limit_bytes=2 * 4 * 10)
    for name in "ab":
        cache.put(name, torch.zeros(10))
    assert cache.get("a") is not None
    cache.put("c", torch.zeros(10))
    assert cache.get("b") is None and cache.get("a") is not None and cache.get("c") is not None
    cache.put("d", torch.zeros(1000))
    assert len(cache) == 1, "the newest stays even if it alone is over the limit"
