"""``transformers serve``, a server that is not ours, with a small model whose processor needs no torchvision."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    CLIPVisionConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedTokenizerFast,
)

from tests.integration.rollout_place import Place, bare

pytest.importorskip("fastapi", reason="transformers serve needs fastapi")
pytest.importorskip("uvicorn", reason="transformers serve needs uvicorn")
COMMAND = Path(sys.executable).parent / "transformers"
pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.skipif(not COMMAND.exists(), reason="the command transformers is not installed"),
]
SPECIAL = ("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<image>")
TEMPLATE = (
    "{%- for m in messages -%}<|im_start|>{{ m.role }}\n{%- if m.content is string -%}{{ m.content }}{%- else -%}"
    "{%- for p in m.content -%}{%- if p.type == 'image' -%}<image>{%- else -%}{{ p.text }}{%- endif -%}{%- endfor -%}"
    "{%- endif -%}<|im_end|>\n{%- endfor -%}{%- if add_generation_prompt -%}<|im_start|>assistant\n{%- endif -%}"
)


def save_llava(folder: Path) -> None:
    """A LLaVA with random weights, a vocabulary of bytes and pictures of 32 pixels."""
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    bytes_ = sorted(pre_tokenizers.ByteLevel.alphabet())
    bpe = Tokenizer(models.BPE(vocab={t: i for i, t in enumerate(bytes_)}, merges=[]))
    bpe.pre_tokenizer, bpe.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    bpe.add_special_tokens([AddedToken(t, normalized=False, special=True) for t in SPECIAL])
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=bpe, eos_token=SPECIAL[1], pad_token=SPECIAL[2])
    tokenizer.chat_template = TEMPLATE
    ids, small = tokenizer.get_vocab(), {"hidden_size": 32, "intermediate_size": 32, "num_attention_heads": 2}
    text = LlamaConfig(
        vocab_size=len(ids),
        num_hidden_layers=1,
        num_key_value_heads=2,
        max_position_embeddings=8192,
        eos_token_id=ids[SPECIAL[1]],
        pad_token_id=ids[SPECIAL[2]],
        bos_token_id=None,
        **small,
    )
    vision = CLIPVisionConfig(num_hidden_layers=1, image_size=32, patch_size=16, projection_dim=32, **small)
    config = LlavaConfig(
        text_config=text, vision_config=vision, image_token_index=ids["<image>"], vision_feature_layer=-1
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        LlavaForConditionalGeneration(config).save_pretrained(folder)
    side = {"height": 32, "width": 32}
    LlavaProcessor(
        image_processor=CLIPImageProcessorPil(size=side, crop_size=side, do_center_crop=False),
        tokenizer=tokenizer,
        patch_size=16,
        vision_feature_select_strategy="default",
        image_token="<image>",
        num_additional_image_tokens=1,
        chat_template=TEMPLATE,
    ).save_pretrained(folder)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """URL and model name of a running server."""
    folder = tmp_path_factory.mktemp("llava")
    save_llava(folder)
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    process = subprocess.Popen(
        [COMMAND, "serve", str(folder), "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"],
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
    )
    url = f"http://127.0.0.1:{port}/v1"
    try:
        _wait_for(url, process)
        yield url, str(folder)
    finally:
        process.terminate()
        process.wait(10)


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(300):
        assert process.poll() is None, "transformers serve ended by itself"
        try:
            httpx.get(f"{url}/models", timeout=5)
            return
        except httpx.ConnectError:
            time.sleep(0.2)
    pytest.fail("transformers serve does not answer")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    bare(monkeypatch, tmp_path)
    return Place(tmp_path, capsys)


def test_it_is_rolled_out_and_measured_and_training_refuses_it(place: Place, served: tuple[str, str]) -> None:
    url, model = served
    there = ["--model-base-url", url, "--model-name", model, "--renderer-name", "qwen3-vl", "--max-turns", "2"]
    few = ["--tasks", "train_02_enable_wifi", "--max-tokens", "6"]
    rolled = place.cuarl("rollout", *few, *there, "--episodes", "2", "--name", "r", "--json")
    assert rolled.code == 0, rolled.err
    assert "does not give token ids" in rolled.err and "can be measured, but not trained on" in rolled.err
    with place.store() as store:
        turns = [t for episode in store.trajectories(run=rolled.lines[-1]["run_id"]) for t in episode.turns]
    assert turns and all(t.sampled and not t.sampled.exact and t.sampled.logprobs is None for t in turns)
    measured = place.cuarl("eval", *few, *there, "--episodes", "2", "--no-baselines", "--json")
    assert measured.code == 0 and measured.lines[-1]["evaluation"]["overall"]["n"] == 2, measured.err
    train = ["train", *few, "--model-base-url", url, "--max-steps", "1"]
    refused = place.cuarl(*train)
    assert refused.code == 2 and "--rescore" in refused.err and "token ids" in refused.err


def test_rescoring_trains_on_it_when_asked(place: Place, served: tuple[str, str]) -> None:
    url, model = served
    trained = place.cuarl(
        "train",
        "--tasks",
        "train_02_enable_wifi",
        "--model-base-url",
        url,
        "--served-model-name",
        model,
        "--rescore",
        "--group-size",
        "2",
        "--groups-per-batch",
        "1",
        "--max-turns",
        "2",
        "--max-tokens",
        "6",
        "--max-steps",
        "1",
        "--skip-baseline",
        "--eval-episodes",
        "1",
        "--name",
        "t",
    )
    assert trained.code == 0, trained.err
    assert "recomputed here (--rescore)" in trained.err
    with place.store() as store:
        turns = [t for e in store.trajectories(step=1) if e.purpose == "train" for t in e.turns]
    assert turns and all(t.sampled and t.sampled.logprobs and not t.sampled.exact for t in turns)
