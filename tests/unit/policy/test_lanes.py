import threading
import time
from functools import partial

import pytest
import torch

from cuarl.policy.lanes import Lanes, run_alone


@pytest.fixture
def two() -> Lanes:
    before = torch.get_num_threads()
    made = Lanes(2)
    torch.set_num_threads(before)
    return made


def test_pieces_run_beside_each_other_and_come_back_in_order(two: Lanes) -> None:
    met = threading.Barrier(2)

    def piece(number: int) -> int:
        met.wait(30)
        return number

    assert two.run([partial(piece, n) for n in range(6)]) == list(range(6))


def test_a_lane_computes_what_one_thread_does(two: Lanes) -> None:
    x = torch.randn(700, 256, generator=torch.Generator().manual_seed(0))
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    expected = x @ x.t()
    torch.set_num_threads(before)
    assert all(torch.equal(found, expected) for found in two.run([lambda: x @ x.t()] * 4))


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad, torch.enable_grad])
def test_gradients_are_on_where_they_are_on_outside(two: Lanes, mode: type) -> None:
    with mode():
        expected = torch.is_grad_enabled(), torch.is_inference_mode_enabled()
        assert two.run([lambda: (torch.is_grad_enabled(), torch.is_inference_mode_enabled())]) == [expected]


def test_the_first_error_is_raised_once_all_are_over(two: Lanes) -> None:
    over: list[int] = []

    def piece(number: int) -> None:
        if number < 2:
            raise ValueError(str(number))
        time.sleep(0.05)
        over.append(number)

    with pytest.raises(ValueError, match="0"):
        two.run([partial(piece, n) for n in range(4)])
    assert sorted(over) == [2, 3]


def test_without_lanes_pieces_run_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    assert run_alone([threading.get_ident]) == [threading.get_ident()]
