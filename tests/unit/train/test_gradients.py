import pytest
import torch
from torch import nn

from cuarl.errors import TrainError
from cuarl.train.gradients import check_trained_names, dead_adapters, reproducible


def scattered_gradient():
    """The gradient of a look-up in which a few rows are read very often: its sum over the readers has no fixed
    order."""
    table = torch.linspace(-1, 1, 8 * 64).view(8, 64).requires_grad_()
    index = torch.arange(4096) % 8
    (table[index] * torch.sin(torch.arange(4096 * 64.0)).view(4096, 64)).sum().backward()
    return table.grad


def test_sums_over_threads_have_the_same_bits_every_time():
    threads = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        with reproducible(torch.device("cpu")):
            first = scattered_gradient()
            assert all(torch.equal(scattered_gradient(), first) for _ in range(20))
    finally:
        torch.set_num_threads(threads)


def test_the_switches_are_put_back_afterwards():
    before = torch.utils.deterministic.fill_uninitialized_memory
    with reproducible(torch.device("cpu")):
        assert torch.are_deterministic_algorithms_enabled()
    assert not torch.are_deterministic_algorithms_enabled()
    assert torch.utils.deterministic.fill_uninitialized_memory == before


def parameter(*, gradient, trained=True):
    p = nn.Parameter(torch.zeros(2), requires_grad=trained)
    p.grad = gradient
    return p


def test_a_module_is_dead_if_neither_of_its_matrices_has_a_gradient():
    some, none = torch.tensor([0.0, 1e-30]), torch.zeros(2)
    named = {
        "a.q_proj.lora_A.default.weight": parameter(gradient=none),
        "a.q_proj.lora_B.default.weight": parameter(gradient=some),
        "a.k_proj.lora_A.default.weight": parameter(gradient=none),
        "a.k_proj.lora_B.default.weight": parameter(gradient=None),
        "a.v_proj.lora_B.default.weight": parameter(gradient=none, trained=False),
        "a.norm.weight": parameter(gradient=none),
        "m.visual.fc.lora_B.default.weight": parameter(gradient=none),
    }
    assert dead_adapters(named.items(), pictures=False, of_vision=of_vision) == ["a.k_proj"]
    assert dead_adapters(named.items(), pictures=True, of_vision=of_vision) == ["a.k_proj", "m.visual.fc"]


def test_an_adapter_is_trained_whole_and_alone():
    fine = {"q.lora_A.default.weight": parameter(gradient=None), "q.weight": parameter(gradient=None, trained=False)}
    assert check_trained_names(fine.items()) == ["q.lora_A.default.weight"]
    with pytest.raises(TrainError, match=r"base would be trained along, norm\.weight \(1 in all\)"):
        check_trained_names({**fine, "norm.weight": parameter(gradient=None)}.items())
    with pytest.raises(TrainError, match=r"k\.lora_B\.default\.weight would not be trained"):
        check_trained_names({**fine, "k.lora_B.default.weight": parameter(gradient=None, trained=False)}.items())


def of_vision(name):
    return name.startswith("m.visual.")
