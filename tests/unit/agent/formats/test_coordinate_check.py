import pytest

from cuarl.agent import formats
from cuarl.agent.formats import Size
from cuarl.agent.formats.coordinate_check import prove
from cuarl.agent.formats.family import Family
from cuarl.agent.formats.qwen3_vl.format import Qwen3VL
from cuarl.agent.formats.qwen25_vl.format import Qwen25VL
from cuarl.errors import AgentError
from cuarl.types import Action


@pytest.mark.parametrize("kind", ["phone", "desktop"])
@pytest.mark.parametrize("name", formats.NAMES)
def test_every_format_is_proven_on_a_phone_and_a_desktop(name: str, kind: str) -> None:
    screen = Size(360, 640) if kind == "phone" else Size(1280, 800)
    format = formats.get(name, kind)  # type: ignore[arg-type]
    assert isinstance(format, Family)
    proof = prove(format, screen)
    assert proof.holds, [t.fault for t in proof.targets if t.fault]
    assert len(proof.targets) == 39 and proof.worst <= 1
    assert proof.picture.size == proof.seen


def test_a_model_that_sees_less_is_met_within_half_a_step() -> None:
    proof = prove(Qwen25VL(), Size(1080, 2400), Size(672, 1484))
    assert proof.holds and proof.grid == proof.seen == (672, 1484)
    assert 0 < proof.worst <= 1080 / 672 / 2 + 0.5


class AsIfUsual(Qwen25VL):
    """Takes the size that the family usually sees for the one that was really seen."""

    def grid(self, screen: Size, resized: Size | None) -> Size:
        return super().grid(screen, None)


class AsIfScreen(Qwen25VL):
    """Takes pixels of the picture for pixels of the screen."""

    def grid(self, screen: Size, resized: Size | None) -> Size:
        return screen


class Swapped(Qwen3VL):
    """Writes y before x, and reads it so."""

    def _write(self, action: Action, screen: Size, grid: Size) -> str:
        action = action.model_copy(update={"x": action.y, "y": action.x})  # type: ignore[union-attr]
        return super()._write(action, screen, grid)

    def _read(self, text: str, screen: Size, grid: Size, *, strict: bool, warnings: list[str]) -> Action:
        action = super()._read(text, screen, grid, strict=strict, warnings=warnings)
        return action.model_copy(update={"x": action.y, "y": action.x})  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("format", "screen", "seen"),
    [
        (AsIfUsual(), Size(1080, 2400), Size(672, 1484)),
        (AsIfScreen(), Size(1080, 2400), Size(672, 1484)),
        (Swapped(), Size(1000, 1000), None),
    ],
)
def test_a_map_that_agrees_with_itself_alone_is_found_out(format: Family, screen: Size, seen: Size | None) -> None:
    proof = prove(format, screen, seen)
    assert not proof.holds
    assert any("drawn at" in t.fault for t in proof.targets)
    assert proof.picture.getcolors(1 << 20), "and the picture shows it"
    assert (220, 38, 38) in {colour for _, colour in proof.picture.getcolors(1 << 20)}  # type: ignore[union-attr]


def test_a_map_that_loses_its_way_back_is_found_out() -> None:
    class Lost(Qwen3VL):
        def _read(self, text: str, screen: Size, grid: Size, *, strict: bool, warnings: list[str]) -> Action:
            return super()._read(text, Size(*reversed(screen)), grid, strict=strict, warnings=warnings)

    proof = prove(Lost(), Size(400, 800))
    assert not proof.holds and proof.worst > 100


def test_a_screen_too_small_to_draw_on_is_refused() -> None:
    with pytest.raises(AgentError, match="too small"):
        prove(Qwen3VL(), Size(30, 30))
