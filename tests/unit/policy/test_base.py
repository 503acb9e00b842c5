"""The seam holds: a policy that has nothing of transformers is sampled, scored and trained by what all policies are."""

import ast
import copy
import re
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import anyio
import pytest
import torch
from torch import nn

from cuarl.policy.answering import draw_next
from cuarl.policy.base import Policy, TokenScores
from cuarl.policy.inputs import Inputs, Row, pad
from cuarl.policy.prompt import Prompt
from cuarl.policy.sampler import Message, Picture, PromptTooLong, SampleRequest, SamplingParams, Text
from cuarl.policy.sampling.local import LocalSampler
from cuarl.policy.sampling.sampler_copy import copy_weights, sampler_copy
from cuarl.policy.score import Scorer, score_logits
from cuarl.policy.special import SpecialIds
from cuarl.train.batch import Batch, BatchConfig
from cuarl.train.config import LearnerConfig
from cuarl.train.learner import Learner
from cuarl.train.schedule import OptimConfig
from tests.unit.policy.pictures import screen
from tests.unit.train.episodes import group, trajectory

ROOT = Path(__file__).parents[3]
IMAGE, END = 256, 257


class BytesNet(nn.Module):
    """The next byte from the last one and the mean colour of the row's pictures."""

    def __init__(self):
        super().__init__()
        self.colour, self.byte, self.head = nn.Linear(3, 8), nn.Embedding(258, 8), nn.Linear(8, 258)
        for i, p in enumerate(self.parameters()):
            nn.init.normal_(p, std=0.3, generator=torch.Generator().manual_seed(i))

    def forward(self, before, colours):
        """Hidden states (B, T, 8) of bytes (B, T) and colours (B, 3)."""
        return torch.tanh(self.byte(before) + self.colour(colours)[:, None])


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesInputs(Inputs):
    before: torch.Tensor
    colours: torch.Tensor


class BytesPolicy:
    """Text as bytes, a picture as one token."""

    name, version, revision, halted = "bytes", 0, None, bool
    special = SpecialIds(IMAGE, IMAGE, IMAGE, frozenset({END}), END, END, suppressed=(IMAGE,))
    context, width, has_adapter, unpadded, device = 512, 8, False, False, torch.device("cpu")

    def __init__(self):
        self.model = self.base = BytesNet()

    def on_device(self):
        return nullcontext()

    def suppressed(self):
        return torch.tensor(self.special.suppressed)

    def render(self, messages, *, max_tokens=512):
        parts = [p for m in messages for p in m.parts]
        ids = [i for p in parts for i in (p.text.encode() if isinstance(p, Text) else [IMAGE])]
        screens = tuple(p.screenshot for p in parts if isinstance(p, Picture))
        return PromptTooLong(len(ids), max_tokens) if len(ids) > max_tokens else Prompt(tuple(ids), screens)

    def encode_answer(self, text):
        return (*text.encode(), END)

    def decode(self, ids):
        return bytes(i for i in ids if i < IMAGE).decode("latin-1")

    def picture_tokens(self, width, height):
        return 1

    def seen_size(self, width, height):
        return None

    def shown(self, screenshot):
        return screenshot

    def collate(self, rows, *, padding="left", pack=False):
        ids, mask = pad([r.prompt_ids for r in rows], END, padding)
        answers, answer_mask = pad([r.answer_ids for r in rows], END, "right")
        seen = [[s.image.convert("RGB").resize((1, 1)).getpixel((0, 0)) for s in r.screenshots] for r in rows]
        return BytesInputs(
            prompt_ids=ids,
            prompt_mask=mask,
            last=(mask * torch.arange(mask.shape[1])).amax(1),
            prompt_of=torch.arange(len(rows)),
            answer_ids=answers,
            answer_mask=answer_mask,
            before=torch.cat([torch.tensor([[r.prompt_ids[-1]] for r in rows]), answers[:, :-1]], dim=1),
            colours=torch.tensor(seen).float().mean(1) / 255,
        )

    def answer(self, jobs):
        colours = self.collate([Row(*job.prompt, answer_ids=(END,)) for job in jobs]).colours
        tokens = torch.tensor([job.prompt.ids[-1] for job in jobs])
        with torch.inference_mode():
            while any(job.stop is None for job in jobs):
                tokens = draw_next(self, jobs, self.model.head(self.model(tokens[:, None], colours)[:, 0]))

    def score(self, inputs, temperature, options):
        hidden = self.model(inputs.before, inputs.colours)[inputs.answer_mask]
        targets, logits = inputs.answer_ids[inputs.answer_mask], self.model.head(hidden)
        return TokenScores(*score_logits(logits, targets, temperature, self.suppressed()), hidden)

    def parameters(self):
        return self.model.parameters()

    def reference(self):
        return nullcontext()  # it has no adapter: a penalty is taken to its start

    def updated(self, version=None):
        self.version = self.version + 1 if version is None else version

    def save_companions(self, folder):
        pass

    def with_model(self, model, memo):
        return copy.deepcopy(self, memo)

    def forget_pictures(self):
        pass

    def recall_pictures(self):
        pass

    def in_lanes(self, screenshots):
        return False

    def forget_prompts(self):
        pass

    def release_memory(self, keep_bytes=0):
        pass

    def take_work(self):
        return None


def sample(policy, goal, seeds):
    """Answers of a sampler of this process to the same prompt."""
    message = Message("user", (Picture(screen(1)), Text(goal)))
    sampler, found = LocalSampler(policy), []

    async def one(seed):
        found.append(await sampler.sample(SampleRequest((message,), SamplingParams(max_tokens=6), seed)))

    async def all_of_them():
        async with anyio.create_task_group() as tasks:
            for seed in seeds:
                tasks.start_soon(one, seed)

    anyio.run(all_of_them)
    return found


def batch_of(samples):
    """One group: answers that begin with an ASCII byte are rewarded."""
    attempts = [trajectory(float(s.token_ids[0] < 128), s, episode=f"e{i}") for i, s in enumerate(samples)]
    return Batch((group(*attempts),), {screen(1).digest: screen(1)})


def test_it_has_all_that_the_protocol_asks_for():
    wanted = {n for c in Policy.__mro__ for n in (*vars(c), *vars(c).get("__annotations__", ())) if n[0] != "_"}
    assert {"collate", "answer", "score", "render", "model"} < wanted
    assert [name for name in wanted if not hasattr(BytesPolicy(), name)] == []


def test_what_is_sampled_from_a_policy_of_another_kind_is_scored_alike_and_trained():
    policy = BytesPolicy()
    samples = sample(policy, "go", range(12))
    assert {s.token_ids[0] < 128 for s in samples} == {True, False}, "some are rewarded"
    rows = [Row(s.prompt_ids, (screen(1),), s.token_ids) for s in samples]
    scored = logprobs(policy, rows)
    for s, row in zip(samples, scored, strict=True):
        assert list(s.logprobs) == pytest.approx(row[: len(s.token_ids)].tolist(), abs=1e-6)

    learner = Learner(policy, LearnerConfig(optim=OptimConfig(learning_rate=0.02)))
    metrics = learner.update(batch_of(samples), step=1)
    assert metrics["optim/updates"] == 1 and metrics["policy/logprob_diff_mean"] < 1e-6
    rewarded = torch.tensor([s.token_ids[0] < 128 for s in samples])
    moved = (logprobs(policy, rows) - scored)[:, 0]
    assert policy.version == 1 and moved[rewarded].mean() > 0 > moved[~rewarded].mean()


def logprobs(policy, rows):
    with torch.no_grad():
        return Scorer(policy).eval()(policy.collate(rows)).logprobs


def test_a_critic_reads_the_states_of_a_policy_of_another_kind():
    policy = BytesPolicy()
    learner = Learner(policy, LearnerConfig(batch=BatchConfig(baseline="critic")))
    assert learner.update(batch_of(sample(policy, "go", range(4))), step=1)["value/mean"] == 0


def test_a_copy_samples_on_its_own():
    policy = BytesPolicy()
    other, first = sampler_copy(policy), sample(policy, "go", range(3))
    with torch.no_grad():
        policy.model.head.bias[ord("a")] += 90
    assert [s.token_ids for s in sample(other, "go", range(3))] == [s.token_ids for s in first]
    copy_weights(other, policy, version=5)
    assert {s.text for s in sample(other, "go", range(3))} == {"a" * 6} and other.version == 5


def kinds_asked_for(code):
    """The names in the second arguments of ``isinstance`` and ``issubclass``."""
    # few files name a policy, and to read one takes a while
    for node in ast.walk(ast.parse(code)) if "Policy" in code and re.search("isinstance|issubclass", code) else ():
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
            found = ast.walk(node.args[1])
            yield from (getattr(n, "id", None) or getattr(n, "attr", None) or "" for n in found)


def policies():
    """The names of all classes of policies."""
    for path in sorted((ROOT / "cuarl" / "policy").rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        yield from (n.name for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name.endswith("Policy"))


def test_nobody_asks_what_kind_of_policy_it_is():
    kinds = set(policies())
    assert {"Policy", "QwenVLPolicy", "GenericPolicy"} <= kinds
    asked = {
        f"{path.relative_to(ROOT)}: {kind}"
        for path in sorted((ROOT / "cuarl").rglob("*.py"))
        for kind in kinds_asked_for(path.read_text("utf-8"))
        if kind in kinds
    }
    assert asked == set()
    assert "GenericPolicy" in kinds_asked_for("isinstance(policy, (int, generic.GenericPolicy))")
