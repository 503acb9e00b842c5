"""NF4 against its definition, number by number, and against bitsandbytes where that is installed."""

from statistics import NormalDist

import pytest
import torch

from cuarl.policy.nf4.codes import BITS, LEVELS, Packed, pack, scale_levels, unpack, unpack_plainly


def weight(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * 0.03


def test_levels_share_a_normal_distribution_out_as_qlora_says() -> None:
    """Quantiles of either half between the offset and a half, normalised, with one zero (arXiv:2305.14314, section 3;
    8 positive and 7 negative ones)."""
    offset, quantile = 1 - (1 / 32 + 1 / 30) / 2, NormalDist().inv_cdf

    def half(count: int) -> list[float]:
        return [quantile(offset - i * (offset - 0.5) / count) for i in range(count)]

    found = sorted([*half(8), 0.0, *(-q for q in half(7))])
    assert [q / max(found) for q in found] == pytest.approx(LEVELS, abs=1e-6)


def slow_unpacked(values: list[float], packed: Packed) -> list[float]:
    """What is packed, by loops, after a look at whether each code is that of a nearest level."""
    bytes_, scales = packed.codes.tolist(), packed.scales.tolist()
    codes = [c for b in bytes_ for c in (b // 16, b % 16)]
    blocks = [values[i : i + 64] for i in range(0, len(values), 64)]
    sizes = [max(map(abs, block)) for block in blocks]
    mean = sum(sizes) / len(sizes)
    found: list[float] = []
    for b, block in enumerate(blocks):
        group = [s - mean for s in sizes[b // 256 * 256 : b // 256 * 256 + 256]]
        largest = max(map(abs, group))
        scaled = (sizes[b] - mean) / largest if largest else 0.0
        distances = [abs(scaled - level) for level in scale_levels()]
        assert distances[scales[b]] <= min(distances) + 1e-5
        size = scale_levels()[scales[b]] * largest + mean
        for i, value in enumerate(block):
            code = codes[64 * b + i]
            distances = [abs((value / sizes[b] if sizes[b] else 0.0) - level) for level in LEVELS]
            assert distances[code] <= min(distances) + 1e-5
            found.append(LEVELS[code] * size)
    return found


@pytest.mark.parametrize("shape", [(4, 64), (5, 40), (1, 3), (300, 64)], ids=str)
def test_packed_numbers_are_the_nearest_that_there_are(shape: tuple[int, int]) -> None:
    given = weight(*shape)
    given[0, :2] = torch.tensor([0.0, -0.2])
    packed = pack(given)
    expected = torch.tensor(slow_unpacked(given.flatten().tolist(), packed)).view(shape)
    assert torch.allclose(unpack(packed, shape, torch.float32), expected, atol=1e-7)


def test_a_block_of_zeros_stays_zeros_beside_others() -> None:
    given = weight(4, 64)
    given[1] = 0
    assert not unpack(pack(given), (4, 64), torch.float32)[1].any()
    assert not unpack(pack(torch.zeros(4, 64)), (4, 64), torch.float32).any()


def test_numbers_are_off_by_half_a_gap_of_levels_at_most() -> None:
    given = weight(256, 64)
    largest = given.abs().amax(1, keepdim=True)
    off = (unpack(pack(given), (256, 64), torch.float32) - given).abs()
    # half of the widest gap, and what quantising the scale adds: 0.7 % of the largest deviation
    assert (off <= (0.152 + 0.01) * largest).all()
    assert 0.02 < float((off / largest).mean()) < 0.04


def test_another_type_is_one_rounding_away() -> None:
    packed = pack(weight(64, 64))
    exact = unpack(packed, (64, 64), torch.float32)
    assert torch.equal(unpack(packed, (64, 64), torch.bfloat16), exact.bfloat16())
    assert torch.equal(unpack(packed, (64, 64), torch.float16), exact.half())


def test_memory_is_what_it_is_said_to_be() -> None:
    packed = pack(weight(512, 256))
    assert pytest.approx(4.127, abs=1e-3) == BITS
    # beside the one mean
    assert 8 * sum(part.nbytes for part in packed[:3]) == BITS * 512 * 256


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_codes_are_those_of_bitsandbytes(dtype: torch.dtype) -> None:
    functional = pytest.importorskip("bitsandbytes.functional", reason="bitsandbytes is not installed")
    given = weight(512, 256).to(dtype)
    codes, state = functional.quantize_4bit(given, blocksize=64, compress_statistics=True, quant_type="nf4")
    packed = pack(given)
    assert torch.equal(codes.flatten(), packed.codes)
    assert torch.equal(state.state2.code, torch.tensor(scale_levels()))
    assert torch.equal(state.state2.absmax, packed.scale_sizes) and torch.equal(state.offset, packed.mean)
    # of scales midway between two levels now and then the other is taken
    apart = (state.absmax.int() - packed.scales.int()).abs()
    assert apart.max() <= 1 and apart.count_nonzero() < 0.02 * len(apart)
    theirs = Packed(codes.flatten(), state.absmax, state.state2.absmax, state.offset)
    assert torch.equal(unpack_plainly(theirs, (512, 256), dtype), functional.dequantize_4bit(codes, state))
