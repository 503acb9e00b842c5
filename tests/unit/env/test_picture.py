"""Pictures in pieces: cut from what is printed around them, and asked for again where half is missing."""

from __future__ import annotations

import io

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from cuarl.env.picture import cut_png, whole
from cuarl.errors import EnvError
from cuarl.types import Screenshot

WARNING = (
    b"[Warning] Multiple displays were found, but no display id was specified! Defaulting to the first display found.\n"
)


def png(fmt="PNG", **options):
    out = io.BytesIO()
    Image.effect_noise((40, 30), 60).convert("RGB").save(out, fmt, **options)
    return out.getvalue()


PNG = png()


@pytest.mark.parametrize("before", [b"", WARNING, b"IEND\n"], ids=["", "warning", "name-of-the-last-chunk"])
@pytest.mark.parametrize("behind", [b"", WARNING, b"\n", b"IEND" * 9], ids=["", "warning", "newline", "names"])
def test_b43_warnings_before_and_behind_a_picture_are_cut(before, behind):
    assert cut_png(before + PNG + behind) == PNG


def test_b43_last_chunk_is_found_by_its_place_and_not_by_its_name():
    from PIL.PngImagePlugin import PngInfo

    said = PngInfo()
    said.add_text("comment", "IEND\xaeB`\x82 is how a picture ends")
    data = png(pnginfo=said)
    assert cut_png(data + WARNING) == data


@given(st.integers(0, len(PNG) - 1), st.sampled_from([b"", WARNING]))
def test_part_of_a_picture_is_none(size, before):
    assert cut_png(before + PNG[:size]) == b""


@given(st.binary(max_size=200))
def test_what_is_no_picture_is_none(data):
    assert cut_png(data) == b""


class Device:
    """Gives these replies in turn, the last one for ever."""

    def __init__(self, *replies):
        self.replies, self.asked = replies, 0

    async def ask(self):
        self.asked += 1
        return self.replies[min(self.asked, len(self.replies)) - 1]


@pytest.fixture(autouse=True)
def without_pauses(monkeypatch):
    monkeypatch.setattr("cuarl.env.picture.AGAIN_S", (0.0, 0.0))


@pytest.mark.parametrize("broken", [PNG[: len(PNG) // 2], b"", b"<html>502</html>", png("JPEG")[:500]], ids=range(4))
def test_broken_picture_is_asked_for_again(broken):
    device = Device(broken, broken, PNG)
    shot = anyio.run(whole, device.ask, "the phone")
    assert (shot.digest, device.asked) == (Screenshot.decode(PNG).digest, 3)


def test_picture_that_stays_broken_is_an_error_that_names_whose_it_is():
    device = Device(PNG[:-30])
    with pytest.raises(EnvError, match="the picture of the phone can't be read"):
        anyio.run(whole, device.ask, "the phone")
    assert device.asked == 3


@pytest.mark.parametrize("fmt", ["PNG", "JPEG", "BMP", "GIF", "WEBP"])
def test_damaged_bytes_are_one_kind_of_error(fmt):
    import random

    rng, data = random.Random(1), png(fmt)
    refused = 0
    for _ in range(300):
        damaged = bytearray(data)
        for _ in range(rng.choice((1, 3, 20))):
            damaged[rng.randrange(min(len(data), rng.choice((60, len(data)))))] = rng.randrange(256)
        try:
            Screenshot.decode(bytes(damaged))
        except OSError:
            refused += 1
    assert refused > 30
