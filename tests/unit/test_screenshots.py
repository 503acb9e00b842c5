"""Pictures of every kind become the one kind that models see."""

import pytest
from PIL import Image

from cuarl.types import Screenshot


def _pixel(mode: str, value: object) -> Image.Image:
    return Image.new(mode, (1, 1), value)  # type: ignore[arg-type]


def _palette() -> Image.Image:
    image = Image.new("P", (1, 1), 0)
    image.putpalette([10, 20, 30])
    image.info["transparency"] = 0
    return image


@pytest.mark.parametrize(
    ("image", "rgb"),
    [
        pytest.param(_pixel("RGBA", (200, 0, 0, 128)), (227, 127, 127), id="half transparent"),
        pytest.param(_pixel("RGBA", (0, 0, 0, 0)), (255, 255, 255), id="transparent"),
        pytest.param(_pixel("LA", (0, 0)), (255, 255, 255), id="grey, transparent"),
        pytest.param(_palette(), (255, 255, 255), id="a palette's transparent colour"),
        pytest.param(_pixel("I;16", 32896), (128, 128, 128), id="16 bits"),
        pytest.param(_pixel("CMYK", (0, 255, 255, 0)), (255, 0, 0), id="print colours"),
        pytest.param(_pixel("1", 1), (255, 255, 255), id="black and white"),
    ],
)
def test_c25_a_screenshot_is_rgb_over_white_whatever_it_was(image: Image.Image, rgb: tuple[int, int, int]) -> None:
    shown = Screenshot(image).image
    assert shown.mode == "RGB"
    found = shown.getpixel((0, 0))
    assert isinstance(found, tuple) and all(abs(a - b) <= 1 for a, b in zip(found, rgb, strict=True)), found


def test_c25_what_is_stored_is_what_was_seen() -> None:
    shot = Screenshot(_pixel("RGBA", (200, 0, 0, 128)))
    again = Screenshot.decode(shot.png())
    assert again.digest == shot.digest and again.image.tobytes() == shot.image.tobytes()
