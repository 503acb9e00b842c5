"""An adapter on a base in four bits learns, and nothing else does."""

import pytest
import torch

from .policies import played, tiny_policy, weights
from .test_learner import learner_of, logprob_of, step


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_successes_become_likelier_and_the_base_stays_as_it_is(dtype):
    policy = tiny_policy(packed=True, dtype=dtype)
    before = {name: value.clone() for name, value in policy.model.state_dict().items()}
    batch = played(policy, [(1, 0, 1, 0)], with_pictures=False)
    likely = [logprob_of(policy, batch, reward) for reward in (1, 0)]
    learner = learner_of(policy, learning_rate=1e-2)
    for number in (1, 2, 3):
        step(learner, batch, number)
    assert logprob_of(policy, batch, 1) > likely[0]
    assert logprob_of(policy, batch, 0) < likely[1]
    changed = {name for name, value in policy.model.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == {name for name in before if "lora_" in name}
    assert {p.dtype for p in policy.parameters()} == {torch.float32}


def test_layers_that_are_computed_again_give_the_same_step():
    found = []
    for checkpointing in (False, True):
        policy = tiny_policy(packed=True)
        step(learner_of(policy, checkpointing=checkpointing), played(policy, [(1, 0, 1), (0, 1)]))
        found.append(torch.cat([w.flatten() for w in weights(policy).values()]))
    assert torch.allclose(*found, atol=1e-6)
