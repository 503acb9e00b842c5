import copy
import json
import resource
import shutil

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file

from cuarl.errors import CheckpointError
from cuarl.run.checkpoints import marked_step, saved_steps
from cuarl.train.card import About
from cuarl.train.checkpoint import Checkpoints
from cuarl.train.config import LearnerConfig
from cuarl.train.learner import Learner
from cuarl.train.schedule import OptimConfig

from .policies import played, tiny_policy, weights

ABOUT = About(run="mine", base_model="org/model", base_revision="abc123", tasks="settings", config_digest="d1")


def started(root, *, full=False, limit=None, rate=1e-2, **options):
    policy = tiny_policy(full=full, **options)
    learner = Learner(policy, LearnerConfig(optim=OptimConfig(learning_rate=rate)))
    return learner, Checkpoints(root, learner, ABOUT, save_total_limit=limit)


def train(learner, first, last):
    """Steps whose batches depend on the step and on the policy, as in a real run."""
    history = []
    for step in range(first, last + 1):
        learner.begin_step(step)
        batch = played(learner.policy, [(1, 0, 0), (0, 1)], seed=step, version=step - 1)
        history.append(learner.update(batch, step))
    return history


def saved(checkpoints, step, metrics=None):
    folder = checkpoints.save(step)
    checkpoints.commit(step, metrics or {})
    return {p.name: p.read_bytes() for p in folder.iterdir()}


@pytest.mark.parametrize(
    "of",
    [{}, {"full": True}, {"full": True, "dtype": torch.bfloat16, "rate": 1e-4}, {"packed": True}],
    ids=["adapter", "full fine-tuning", "in 16 bits", "adapter on four bits"],
)
def test_an_interrupted_run_equals_an_uninterrupted_one_byte_for_byte(tmp_path, of):
    learner, checkpoints = started(tmp_path / "whole", **of)
    whole = train(learner, 1, 4)
    expected, remembered = saved(checkpoints, 4), (tmp_path / "whole/trainer/step-000004/state.pt").read_bytes()

    learner, checkpoints = started(tmp_path / "cut", **of)
    cut = train(learner, 1, 2)
    saved(checkpoints, 2)
    learner, checkpoints = started(tmp_path / "cut", **of)
    assert checkpoints.restore() == 2
    assert learner.policy.version == 2
    cut += train(learner, 3, 4)
    assert saved(checkpoints, 4) == expected
    assert (tmp_path / "cut/trainer/step-000004/state.pt").read_bytes() == remembered
    assert cut == whole


def test_b19_the_rate_goes_on_after_a_resume_as_if_there_had_been_no_break(tmp_path):
    def made():
        optim = OptimConfig(learning_rate=7e-4, lr_schedule="cosine", warmup_steps=1)
        learner = Learner(tiny_policy(), LearnerConfig(optim=optim, max_steps=4))
        return learner, Checkpoints(tmp_path, learner, ABOUT)

    learner, checkpoints = made()
    rates = [row["optim/lr"] for row in train(learner, 1, 3)]
    saved(checkpoints, 3)
    learner, checkpoints = made()
    rates += [row["optim/lr"] for row in train(learner, 1 + checkpoints.restore(), 4)]
    assert rates == pytest.approx([7e-4, 7e-4, 5.25e-4, 1.75e-4])


def test_the_folder_is_a_plain_adapter_that_gives_the_same_logits(tmp_path):
    learner, checkpoints = started(tmp_path)
    train(learner, 1, 1)
    saved(checkpoints, 1)
    ids = torch.tensor([[7, 8, 9, 10]])
    with torch.no_grad():
        ours = learner.policy.model(input_ids=ids).logits
        untrained = tiny_policy()
        base = copy.deepcopy(untrained.model).unload()
        theirs = PeftModel.from_pretrained(base, str(tmp_path / "step-000001"))(input_ids=ids).logits
        plain = untrained.model(input_ids=ids).logits
    assert torch.equal(ours, theirs)
    assert not torch.equal(ours, plain)


def test_the_folder_holds_companions_a_card_and_where_it_comes_from(tmp_path):
    _, checkpoints = started(tmp_path)
    files = saved(checkpoints, 1, {"eval/settings/success_rate": 0.9, "reward/mean": 0.1})
    assert {"adapter_model.safetensors", "adapter_config.json", "tokenizer.json", "preprocessor_config.json"} <= set(
        files
    )
    facts = json.loads(files["cuarl.json"])
    assert (facts["run"], facts["step"], facts["base_revision"]) == ("mine", 1, "abc123")
    card = files["README.md"].decode()
    assert "base_model: org/model" in card
    assert "| `eval/settings/success_rate` | 0.9 |" in card
    assert "reward/mean" not in card
    assert not any(p.name.endswith(".pt") for p in (tmp_path / "step-000001").iterdir())


def test_a_checkpoint_is_resumed_from_only_once_its_step_is_committed(tmp_path):
    _, checkpoints = started(tmp_path)
    assert (checkpoints.restore(), marked_step(tmp_path)) == (0, None)
    saved(checkpoints, 1)
    checkpoints.save(2)
    assert (saved_steps(tmp_path), marked_step(tmp_path)) == ([1, 2], 1)
    assert checkpoints.restore() == 1


def test_only_the_newest_checkpoints_are_kept(tmp_path):
    _, checkpoints = started(tmp_path, limit=2)
    for step in (1, 2, 3):
        saved(checkpoints, step)
    assert saved_steps(tmp_path) == [2, 3]
    assert sorted(p.name for p in (tmp_path / "trainer").iterdir()) == ["step-000002", "step-000003"]


@pytest.mark.parametrize("size_bytes", [10, 3_000, 30_000], ids=["state", "weights", "tokenizer"])
def test_a_failed_write_leaves_the_earlier_checkpoint_and_no_rubbish(tmp_path, size_bytes):
    _, checkpoints = started(tmp_path)
    saved(checkpoints, 1)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))  # any larger file fails as on a full disk
    try:
        with pytest.raises(CheckpointError, match="step 2 can't be written"):
            checkpoints.save(2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (saved_steps(tmp_path), checkpoints.restore()) == ([1], 1)
    assert not list(tmp_path.rglob(".unfinished*"))


def test_leftovers_of_a_killed_process_are_swept_away(tmp_path):
    _, checkpoints = started(tmp_path)
    (tmp_path / ".unfinished-step-000001").mkdir()
    (tmp_path / ".unfinished-step-000001" / "half").write_text("")
    saved(checkpoints, 1)
    assert not list(tmp_path.glob(".unfinished*"))


def test_a_checkpoint_of_another_shape_is_refused(tmp_path):
    saved(started(tmp_path, targets="attention")[1], 1)
    learner, checkpoints = started(tmp_path)
    with pytest.raises(CheckpointError, match="matched 24 of 42 weights"):
        checkpoints.restore()
    assert learner.policy.version == 0


def test_a_damaged_checkpoint_is_named(tmp_path):
    _, checkpoints = started(tmp_path)
    saved(checkpoints, 1)
    (tmp_path / "step-000001" / "adapter_model.safetensors").write_bytes(b"x")
    with pytest.raises(CheckpointError, match=r"adapter_model\.safetensors is cut off or damaged") as error:
        checkpoints.restore()
    assert error.value.where == str(tmp_path / "step-000001")


def test_the_first_checkpoint_counts_only_once_committed_also_where_links_were_lost(tmp_path):
    _, checkpoints = started(tmp_path)
    checkpoints.save(1)
    assert checkpoints.restore() == 0
    checkpoints.commit(1, {})
    (tmp_path / "latest").unlink()
    assert checkpoints.restore() == 1


def without_marks(root):
    """What a copy of a run from before there was a file beside the link has."""
    (root / "latest").unlink()
    (root / "latest.json").unlink()


def test_what_is_saved_after_going_on_unmarked_is_unfinished_until_committed(tmp_path):
    _, checkpoints = started(tmp_path)
    saved(checkpoints, 1)
    without_marks(tmp_path)
    again = started(tmp_path)[1]
    assert again.restore() == 1
    again.save(2)
    assert started(tmp_path)[1].restore() == 1


def test_a_run_that_goes_on_from_an_earlier_step_keeps_what_it_goes_on_from(tmp_path, caplog):
    _, checkpoints = started(tmp_path, limit=1)
    for step in (1, 2, 3):
        checkpoints.save(step)
    without_limit = started(tmp_path)[1]
    for step in (1, 2, 3):
        without_limit.commit(step, {})
    shutil.rmtree(tmp_path / "step-000003")
    _, again = started(tmp_path, limit=1)
    assert again.restore() == 2
    assert "the checkpoint of step 3 is gone: resuming from step 2" in caplog.text
    (tmp_path / "step-000005").mkdir()
    saved(again, 3)
    assert saved_steps(tmp_path) == [3, 5]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda w: {"x." + k: v for k, v in w.items()}, "matched 0 of 42"),
        (lambda w: dict(list(w.items())[14:]), "matched 28 of 42"),
        (lambda w: w | {"base_model.model.more.lora_A.weight": torch.ones(4, 4)}, "left over: base_model.model.more"),
    ],
    ids=["other names", "a third is missing", "one more"],
)
def test_a_checkpoint_whose_adapter_does_not_fit_is_not_resumed_from(tmp_path, change, says):
    learner, checkpoints = started(tmp_path)
    saved(checkpoints, 1)
    file = tmp_path / "step-000001" / "adapter_model.safetensors"
    save_file(change(load_file(file)), file)
    before = weights(learner.policy)
    with pytest.raises(CheckpointError, match=says):
        checkpoints.restore()
    assert all(torch.equal(v, before[n]) for n, v in weights(learner.policy).items())


def test_a_whole_model_with_missing_weights_is_not_resumed_from(tmp_path):
    _, checkpoints = started(tmp_path, full=True)
    saved(checkpoints, 1)
    file = tmp_path / "step-000001" / "model.safetensors"
    save_file({k: v for k, v in load_file(file).items() if "layers.1" not in k}, file, metadata={"format": "pt"})
    with pytest.raises(CheckpointError, match="weights of the model are missing"):
        checkpoints.restore()


def test_a_state_with_code_in_it_is_refused_by_name(tmp_path):
    _, checkpoints = started(tmp_path)
    saved(checkpoints, 1)
    torch.save({"optimizer": eval}, tmp_path / "trainer" / "step-000001" / "state.pt")
    with pytest.raises(CheckpointError, match="can't be restored"):
        checkpoints.restore()


def test_b19_the_rate_goes_on_where_it_was_after_a_resume(tmp_path):
    """Cosine over four steps behind one of warm-up, broken off behind the second."""
    optim = OptimConfig(learning_rate=7e-4, lr_schedule="cosine", warmup_steps=1)
    rates = []
    for first, last in ((1, 2), (3, 4)):
        learner = Learner(tiny_policy(), LearnerConfig(optim=optim, max_steps=4))
        checkpoints = Checkpoints(tmp_path, learner, ABOUT)
        assert checkpoints.restore() == first - 1
        rates += [metrics["optim/lr"] for metrics in train(learner, first, last)]
        saved(checkpoints, last)
    assert rates == pytest.approx([7e-4, 7e-4, 5.25e-4, 1.75e-4], rel=1e-6)
