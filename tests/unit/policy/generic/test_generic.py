"""Families that are run by their own forward pass, against themselves: one row at a time, unpadded, without caches."""

from pathlib import Path

import pytest
import torch

from cuarl.errors import AgentError, ConfigError
from cuarl.policy.generate import generate
from cuarl.policy.generic.policy import GenericPolicy
from cuarl.policy.inputs import Row
from cuarl.policy.jobs import Job
from cuarl.policy.load import load_policy
from cuarl.policy.prompt import Prompt
from cuarl.policy.sampler import Message, Picture, SampledText, SamplingParams, Text
from cuarl.policy.score import Scorer
from cuarl.policy.spec import LoraSpec, ModelSpec
from tests.unit.policy.checkpointing import compute_layers_again
from tests.unit.policy.other_families import NAMES, save_family
from tests.unit.policy.pictures import messages, prompt, screen


@pytest.fixture(scope="module", params=NAMES)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_family(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture
def adapted(folder: Path) -> GenericPolicy:
    policy = load_policy(ModelSpec(model=str(folder), lora=LoraSpec(rank=4), train="adapter"))
    assert isinstance(policy, GenericPolicy)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        for name, p in policy.model.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(p, std=0.1)
    return policy


def _windows() -> list[tuple[Message, ...]]:
    """Prompts of unequal length: one picture, two, and one behind an earlier answer; of unequal size, too."""
    earlier = Message("assistant", (SampledText("ab", (70, 71)),))
    later = Message("user", (Picture(screen(3, 48, 64)), Text("next")))
    return [
        messages("go", screen(1)),
        messages("open the settings page", screen(1), screen(2, 48, 64)),
        (*messages("go on", screen(1)), earlier, later),
    ]


def _jobs(policy: GenericPolicy) -> list[Job]:
    prompts = [policy.render(m) for m in _windows()]
    temperatures = (0.7, 1.0, 1.3)
    return [
        Job(p, SamplingParams(temperature=t, max_tokens=5 + i), seed=i)
        for i, (p, t) in enumerate(zip(prompts, temperatures, strict=True))
        if isinstance(p, Prompt)
    ]


def test_what_was_sampled_is_scored_alike_however_it_is_batched_and_padded(adapted: GenericPolicy) -> None:
    jobs = _jobs(adapted)
    samples = generate(adapted, jobs)
    assert [len(s.token_ids) for s in samples] == [5, 6, 7], "none of these ends early"
    rows = [Row(j.prompt.ids, j.prompt.screenshots, s.token_ids) for j, s in zip(jobs, samples, strict=True)]
    scorer = Scorer(adapted).eval()
    temperatures = torch.tensor([s.temperature for s in samples])
    for padding in ("left", "right"):
        with torch.no_grad():
            scores = scorer(adapted.collate(rows, padding=padding), temperatures).logprobs
        for scored, sample in zip(scores, samples, strict=True):
            recorded = torch.tensor(sample.logprobs)
            assert (scored[: len(recorded)] - recorded).abs().max() < 1e-4
    for i, job in enumerate(_jobs(adapted)):
        alone = generate(adapted, [job])[0]
        assert alone.token_ids == samples[i].token_ids, "neighbours decide nothing"


def test_the_logprobs_are_those_of_the_models_own_forward_pass(adapted: GenericPolicy) -> None:
    job = _jobs(adapted)[1]
    sample = generate(adapted, [job])[0]
    pictures = adapted.pictures.tensors([job.prompt.screenshots])
    ids = torch.tensor([[*job.prompt.ids, *sample.token_ids]])
    with torch.no_grad():
        types = adapted.pictures.token_types(ids, adapted.special.image)
        logits = adapted.base(input_ids=ids, **pictures, **types).logits[0, len(job.prompt.ids) - 1 : -1].double()
    logits[:, list(adapted.special.suppressed)] = -torch.inf
    expected = torch.log_softmax(logits / sample.temperature, dim=-1)[range(len(sample.token_ids)), sample.token_ids]
    assert (torch.tensor(sample.logprobs) - expected).abs().max() < 1e-4


def test_prompts_are_what_the_familys_processor_makes_of_them(adapted: GenericPolicy) -> None:
    pictures = adapted.pictures
    shots = [screen(1), screen(2, 48, 64)]
    told = [
        {"role": "system", "content": [{"type": "text", "text": "You act on a phone."}]},
        {"role": "user", "content": [{"type": "image"}, {"type": "image"}, {"type": "text", "text": "open it"}]},
    ]
    text = pictures.lay_out(told, answer=True)
    made = pictures.processor(text=[text], images=[[s.image for s in shots]], add_special_tokens=False)
    assert list(prompt(adapted, "open it", *shots).ids) == made["input_ids"][0]


def test_every_adapter_learns_also_if_layers_are_computed_again(adapted: GenericPolicy) -> None:
    rows = [Row(j.prompt.ids, j.prompt.screenshots, (70, 71, 72)) for j in _jobs(adapted)]
    gradients = []
    for checkpointing in (False, True):
        if checkpointing:
            compute_layers_again(adapted.base)
        adapted.model.zero_grad()
        Scorer(adapted).train()(adapted.collate(rows)).logprobs.sum().backward()
        gradients.append([p.grad.clone() for p in adapted.parameters()])
        assert all(g.abs().max() > 0 for g in gradients[-1])
    assert len(gradients[0]) == 2 * 2 * 7, "two matrices for each of seven linear layers of two layers"
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(*gradients, strict=True))
    assert not any(p.requires_grad for n, p in adapted.base.named_parameters() if "vision" in n)


def test_a_picture_is_never_sampled_and_a_text_cannot_hold_one(adapted: GenericPolicy) -> None:
    image = adapted.tokenizer.convert_ids_to_tokens(adapted.special.image)
    assert adapted.special.image in adapted.special.suppressed
    assert not set(adapted.special.suppressed) & adapted.special.eos
    for token in (image, adapted.pictures.placeholder):
        with pytest.raises(AgentError, match="special token"):
            adapted.render(messages(f"press {token}", screen(1)))
    ids = adapted.render(messages("go", screen(1)))
    assert isinstance(ids, Prompt)
    with pytest.raises(ValueError, match="image tokens"):
        adapted.collate([Row(ids.ids, (*ids.screenshots, screen(2)))])


def test_an_answer_ends_where_the_template_ends_it(adapted: GenericPolicy) -> None:
    end = {"idefics3": "<end_of_utterance>", "gemma3": "<end_of_turn>", "llava": "</s>"}[adapted.base.config.model_type]
    assert adapted.tokenizer.convert_ids_to_tokens(adapted.special.end_of_turn) == end
    assert adapted.encode_answer("hi")[-1] in adapted.special.eos


def test_a_model_that_shows_no_pictures_and_sizes_without_effect_are_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="max_pixels have no effect"):
        load_policy(ModelSpec(model=str(folder), max_pixels=4096))
    plain = tmp_path / "plain"
    plain.mkdir()
    for path in folder.iterdir():
        if path.name != "chat_template.jinja":
            (plain / path.name).symlink_to(path)
    (plain / "chat_template.jinja").write_text("{%- for m in messages -%}{{- m.role -}}{%- endfor -%}")
    with pytest.raises(ConfigError, match="shows no pictures"):
        load_policy(ModelSpec(model=str(plain)))
