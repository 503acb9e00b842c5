"""The benchmark against vLLM: what it needs no server for."""

from __future__ import annotations

import hashlib
import json
import random
import time

import pytest
import torch
from tokenizers import Tokenizer

from benchmarks.against_vllm.__main__ import Report, parsed
from benchmarks.against_vllm.checksums import expected
from benchmarks.against_vllm.differences import difference
from benchmarks.against_vllm.model import filled
from benchmarks.against_vllm.parts import PARTS
from benchmarks.against_vllm.server import Place, ServerError, serving
from cuarl.policy import tiny

SIZE = 20_000


@pytest.fixture(scope="module")
def tokenizer():
    state = json.loads((tiny.path() / "tokenizer.json").read_text(encoding="utf-8"))
    return Tokenizer.from_str(json.dumps(filled(state, SIZE)))


def test_what_a_random_model_says_is_read_back_as_it_was(tokenizer):
    assert tokenizer.get_vocab_size() == SIZE
    shipped = tokenizer.get_vocab_size() - 5000
    chance = random.Random(0)
    for _ in range(100):
        ids = [chance.randrange(3000, shipped) for _ in range(32)]
        assert tokenizer.encode(tokenizer.decode(ids)).ids == ids


def test_prompts_have_as_many_tokens_as_with_the_shipped_tokenizer(tokenizer):
    shipped = Tokenizer.from_file(str(tiny.path() / "tokenizer.json"))
    text = "<|im_start|>user\nTurn on Wi-Fi in the settings.<|im_end|>\n"
    assert tokenizer.encode(text).tokens == shipped.encode(text).tokens


def test_differences_are_told_by_mean_tail_and_shares():
    ours = [-1.0] * 1000
    found = difference([-1.02, *[-1.0] * 998, -2.0], ours)
    assert found["tokens"] == 1000 and found["largest"] == 1.0
    assert found["mean"] == pytest.approx(1.02e-3)
    assert found["p99_9"] == pytest.approx(0.02)
    assert (found["above_0.01"], found["above_0.05"], found["clipped"]) == (0.002, 0.001, 0.001)
    assert found["kl"] > 0


def test_checksums_of_a_checkpoint_are_those_of_the_tensors_that_vllm_makes_of_it():
    q, k, v = (torch.full((2, 3), value, dtype=torch.bfloat16) for value in (1.0, 2.0, 3.0))
    layer = "model.language_model.layers.0.self_attn."
    found = expected(
        {
            f"{layer}v_proj.weight": v,
            f"{layer}q_proj.weight": q,
            f"{layer}k_proj.weight": k,
            "model.visual.norm.bias": q,
        }
    )
    whole = torch.cat([q, k, v]).view(torch.uint8).numpy().tobytes()
    assert found["language_model.model.layers.0.self_attn.qkv_proj.weight"] == hashlib.sha256(whole).hexdigest()
    assert found.keys() == {"language_model.model.layers.0.self_attn.qkv_proj.weight", "visual.norm.bias"}


def test_a_part_that_fails_or_takes_too_long_is_told_and_the_next_goes_on(tmp_path):
    report = Report(tmp_path / "out.jsonl", time.monotonic() + 60)

    def broken():
        raise ServerError("no such route")

    report.measured("sleep", broken, 10)
    report.measured("slow", lambda: time.sleep(30) or {}, 0.2)
    report.measured("rollout", lambda: {"seconds": 1}, 10)
    told = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert told[0]["error"] == "ServerError: no such route"
    assert told[1]["error"].startswith("OutOfTime")
    assert told[2]["seconds"] == 1


def test_a_server_that_does_not_start_is_told_with_its_own_words(tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho no GPU here\nexit 3\n")
    python.chmod(0o755)
    place = Place(str(python), tmp_path / "log")
    with pytest.raises(ServerError, match=r"(?s)status 3.*no GPU here"), serving(place, tmp_path, [], 20) as server:
        server.ready()


def test_all_parts_are_measured_unless_some_are_named():
    assert parsed(["--vllm-options", "--enforce-eager"]).parts == [*PARTS, "weights"]
    named = parsed(["--parts", "sleep", "weights", "--tiny"])
    assert (named.parts, named.model, named.device) == (["sleep", "weights"], "tiny-Qwen3-VL", "cpu")
