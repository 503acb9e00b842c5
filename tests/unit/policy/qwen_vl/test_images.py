import numpy as np
import pytest
import torch
from transformers import Qwen2VLImageProcessorPil

from cuarl.policy.prompt import Prompt
from cuarl.policy.qwen_vl.images import ImageProcessor
from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.qwen_vl.render import QwenRenderer
from cuarl.policy.sampler import Message, Picture, PromptTooLong, Text
from tests.unit.policy.pictures import screen


def _processor(**changes: object) -> Qwen2VLImageProcessorPil:
    settings = {"patch_size": 14, "size": {"shortest_edge": 56 * 56, "longest_edge": 200 * 200}}
    return Qwen2VLImageProcessorPil(**(settings | changes))


@pytest.mark.parametrize(
    ("width", "height"),
    [
        pytest.param(112, 84, id="whole tokens"),
        pytest.param(100, 90, id="rounded"),
        pytest.param(400, 300, id="shrunk"),
        pytest.param(20, 30, id="enlarged"),
    ],
)
@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({}, id="a mean per channel"),
        pytest.param({"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "patch_size": 16}, id="qwen3"),
        pytest.param({"do_normalize": False, "temporal_patch_size": 1}, id="rescaled only"),
    ],
)
def test_patches_equal_the_processors_bit_for_bit(width: int, height: int, changes: dict[str, object]) -> None:
    reference = _processor(**changes)
    images = ImageProcessor(reference)
    shots = [screen(1, width, height), screen(2, height, width)]
    expected = reference(images=[s.image for s in shots], return_tensors="np")
    assert torch.equal(images.patches_on(torch.device("cpu"), shots), images.patches(shots))
    stills = images.patches(shots).numpy().reshape(-1, 3, 1, images.patch**2)
    frames = np.repeat(stills, images.frames, axis=2).reshape(len(stills), -1)
    assert np.array_equal(frames, expected["pixel_values"])
    grids = [images.grid(s.width, s.height) for s in shots]
    assert [[1, g.rows, g.cols] for g in grids] == expected["image_grid_thw"].tolist()


@pytest.mark.parametrize(
    ("max_pixels", "resized", "tokens"), [(12_845_056, (1932, 1092), 2691), (1_003_520, (1316, 728), 1222)]
)
def test_c19_a_full_hd_screen_has_the_known_number_of_tokens(
    max_pixels: int, resized: tuple[int, int], tokens: int
) -> None:
    images = ImageProcessor(_processor(), min_pixels=3136, max_pixels=max_pixels)
    assert images.resized(1920, 1080) == resized
    assert images.grid(1920, 1080).tokens == tokens


def test_c19_a_prompt_that_would_be_cut_through_a_picture_is_refused_with_both_numbers(qwen25: QwenVLPolicy) -> None:
    """No token of a picture is ever cut off: a prompt fits as a whole, or is refused before any forward pass."""
    special = qwen25.special
    renderers = [
        QwenRenderer(qwen25.tokenizer, ImageProcessor(_processor(), min_pixels=3136, max_pixels=most), special)
        for most in (12_845_056, 1_003_520)
    ]
    screens = Picture(screen(1, 1920, 1080))
    bare = renderers[0].render((Message("user", (screens, Text(""))),))
    assert isinstance(bare, Prompt)
    around = len(bare.ids) - 2691
    text = Text("x" * (300 - around))
    large, small = (r.render((Message("user", (screens, text)),), max_tokens=2048) for r in renderers)
    assert large == PromptTooLong(needed=2991, limit=2048)
    assert isinstance(small, Prompt) and small.ids.count(special.image) == 1222


def test_a_ribbon_is_refused() -> None:
    with pytest.raises(ValueError, match="too narrow"):
        ImageProcessor(_processor()).grid(4020, 20)


def test_pixel_values_are_float32() -> None:
    assert ImageProcessor(_processor()).patches([screen(0)]).dtype == torch.float32
