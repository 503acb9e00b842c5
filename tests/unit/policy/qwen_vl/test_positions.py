import pytest
import torch

from cuarl.policy.inputs import pad
from cuarl.policy.qwen_vl.images import Grid
from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.qwen_vl.positions import multi_axis_positions


def test_c23_positions_of_two_pictures_between_texts() -> None:
    # a, VS, four image tokens of a 4x4 grid merged by 2, VE, b, VS, the same again, VE, c
    image = torch.tensor([[0, 0, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 0, 0]], dtype=torch.bool)
    axes, after = multi_axis_positions(image, torch.ones_like(image), [Grid(4, 4, 2)] * 2)
    assert axes[0, 0].tolist() == [0, 1, 2, 2, 2, 2, 4, 5, 6, 7, 7, 7, 7, 9, 10]
    assert axes[1, 0].tolist() == [0, 1, 2, 2, 3, 3, 4, 5, 6, 7, 7, 8, 8, 9, 10]
    assert axes[2, 0].tolist() == [0, 1, 2, 3, 2, 3, 4, 5, 6, 7, 8, 7, 8, 9, 10]
    assert after.item() - image.shape[1] == -4


@pytest.mark.parametrize("side", ["left", "right"])
def test_c23_positions_equal_transformers_in_a_ragged_batch(policy: QwenVLPolicy, side: str) -> None:
    s = policy.special
    grids = [Grid(4, 8, 2), Grid(6, 2, 2), Grid(2, 2, 2)]

    def picture(grid: Grid) -> list[int]:
        return [s.vision_start, *[s.image] * grid.tokens, s.vision_end]

    rows = [[5, *picture(grids[0]), 6, 7], [5, 6, 7], [*picture(grids[1]), 8, *picture(grids[2]), 9, 9, 9, 9]]
    ids, mask = pad(rows, s.pad, side)  # type: ignore[arg-type]
    image = ids == s.image
    axes, after = multi_axis_positions(image, mask, grids)
    expected, delta = policy.base.model.get_rope_index(
        ids,
        mm_token_type_ids=image.int(),
        attention_mask=mask.long(),
        image_grid_thw=torch.tensor([[1, g.rows, g.cols] for g in grids]),
    )
    assert torch.equal(axes[:, mask], expected[:, mask])
    assert torch.equal(after - mask.sum(1), delta[:, 0])


def test_positions_refuse_grids_that_do_not_fit_the_tokens() -> None:
    image = torch.ones(1, 4, dtype=torch.bool)
    with pytest.raises(ValueError, match="4 image tokens, but the pictures have 1"):
        multi_axis_positions(image, image, [Grid(2, 2, 2)])
