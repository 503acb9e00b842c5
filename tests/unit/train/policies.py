"""A policy of a few thousand parameters with the real classes, and episodes that it scored itself."""

import random

import torch
from PIL import Image
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast, Qwen2VLImageProcessorPil

from cuarl.policy.adapters.lora import add_lora
from cuarl.policy.fourbit import chosen_layers
from cuarl.policy.inputs import Row
from cuarl.policy.nf4.linear import quantise
from cuarl.policy.qwen_vl.images import ImageProcessor
from cuarl.policy.qwen_vl.policy import QwenVLPolicy
from cuarl.policy.qwen_vl.special import special_ids
from cuarl.policy.qwen_vl.vision import batch_attention
from cuarl.policy.score import Scorer
from cuarl.policy.spec import LoraSpec
from cuarl.pretrain.architecture import Shape, build_model, image_processor_config
from cuarl.train.batch import Batch
from cuarl.types import Screenshot

from .episodes import group, sampled, trajectory

SPECIAL = ("<|endoftext|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
WORDS = 40
SHAPE = Shape(
    patch=16,
    width=32,
    layers=3,
    heads=2,
    kv_heads=1,
    mlp=32,
    vision_width=16,
    vision_layers=3,
    vision_heads=2,
    vision_mlp=16,
    positions=16,
)


def tiny_policy(
    *, lora=None, full=False, seed=0, vision=False, targets="all-linear", dtype=torch.float32, packed=False
):
    """A randomly initialised policy with a LoRA adapter of rank 4, or (``full``) trained as a whole.

    ``packed`` has its base in four bits.
    """
    ids = {token: i for i, token in enumerate((*SPECIAL, *(f"w{i}" for i in range(WORDS))))}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer(models.WordLevel(ids, unk_token="w0")),
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        additional_special_tokens=list(SPECIAL),
    )
    model = build_model(tokenizer, SHAPE, seed=seed).to(dtype).eval()
    batch_attention(model.model.visual)
    if packed:
        quantise(model, chosen_layers(model), torch.device("cpu"))
    special = special_ids(model.config, model.generation_config, tokenizer)
    if full:
        model.model.visual.requires_grad_(False)
    else:
        model = add_lora(model, lora or LoraSpec(rank=4, vision=vision, targets=targets, seed=seed))
    images = ImageProcessor(Qwen2VLImageProcessorPil(**image_processor_config(Shape(patch=16))))
    return QwenVLPolicy(model, tokenizer, images, special, name="test", train_vision=vision)


def screens(n, seed=0):
    """Different small pictures of two tokens each."""
    rng = random.Random(seed)
    made = []
    for _ in range(n):
        image = Image.new("RGB", (32, 64), tuple(rng.choices(range(256), k=3)))
        image.paste(tuple(rng.choices(range(256), k=3)), (4, rng.randint(0, 40), 28, 60))
        made.append(Screenshot(image))
    return made


def played(policy, rewards_G, *, seed=0, turns=2, with_pictures=True, version=0):
    """A batch of groups with the given rewards: random answers of varied length, with this policy's own logprobs."""
    rng = random.Random(seed)
    pictures = screens(4, seed) if with_pictures else []
    rows_E = [[_row(policy, rng, pictures) for _ in range(rng.randint(1, turns))] for rs in rewards_G for _ in rs]
    with torch.no_grad():
        logprobs = Scorer(policy).eval()(policy.collate([r for rows in rows_E for r in rows])).logprobs
    known = iter(logprobs)
    answers_E = iter([[_answer(row, next(known), version) for row in rows] for rows in rows_E])
    groups = [
        group(*(trajectory(r, *next(answers_E), episode=f"g{g}/{i}") for i, r in enumerate(rs)), group_id=f"g{g}")
        for g, rs in enumerate(rewards_G)
    ]
    return Batch(tuple(groups), {s.digest: s for s in pictures})


def _row(policy, rng, pictures):
    words = range(len(SPECIAL), len(SPECIAL) + WORDS)
    shown = (rng.choice(pictures),) if pictures else ()
    image = [policy.special.image] * (2 * len(shown))
    prompt = (*rng.choices(words, k=rng.randint(2, 5)), *image, *rng.choices(words, k=2))
    return Row(prompt, shown, (*rng.choices(words, k=rng.randint(1, 4)), policy.special.end_of_turn))


def _answer(row, logprobs, version):
    images = tuple(s.ref for s in row.screenshots)
    known = tuple(logprobs[: len(row.answer_ids)].tolist())
    return sampled(row.answer_ids, row.prompt_ids, images=images, logprobs=known, policy_version=version)


def weights(policy):
    """Copies of all trained parameters, by name."""
    return {n: p.detach().clone() for n, p in policy.model.named_parameters() if p.requires_grad}
