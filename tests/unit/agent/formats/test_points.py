from hypothesis import given
from hypothesis import strategies as st

from cuarl.agent.formats import Size
from cuarl.agent.formats.points import to_grid, to_pixel


@given(st.integers(1, 1000), st.integers(1, 1000), st.data())
def test_pixels_survive_the_scale_on_screens_of_up_to_a_thousand(width: int, height: int, data: st.DataObject) -> None:
    x, y = data.draw(st.integers(0, width - 1)), data.draw(st.integers(0, height - 1))
    assert to_pixel(*to_grid(x, y, Size(width, height)), Size(width, height)) == (x, y, False)


@given(st.integers(1, 8000), st.data())
def test_pixels_of_larger_screens_move_by_less_than_a_step(side: int, data: st.DataObject) -> None:
    x = data.draw(st.integers(0, side - 1))
    placed = to_pixel(*to_grid(x, x, Size(side, side)), Size(side, side))
    assert placed is not None and abs(placed.x - x) <= side / 2000 + 0.5
