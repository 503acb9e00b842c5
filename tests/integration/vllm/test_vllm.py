"""cuarl against the real vLLM: what is sampled there is what is told, and what is trained here.

The model that is served brings a ``generation_config.json`` by which vLLM samples greedily whatever a request leaves
out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from cuarl.policy.load import load_renderer
from cuarl.policy.remote.draws import DrawTest
from cuarl.policy.remote.openai import OpenAISampler
from cuarl.policy.remote.probe import check_draws, probe
from cuarl.policy.remote.wire import NEUTRAL, EndpointFeatures
from cuarl.policy.spec import ModelSpec
from tests.integration.rollout_place import Place, bare
from tests.integration.vllm.server import COMMAND, serving

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(3000),
    pytest.mark.skipif(not COMMAND.is_file(), reason="vLLM is not installed (make vllm)"),
]
LARGEST = 1e-4
"""Nats that float32 on both sides may differ by; below 2e-5 but for single tokens that are all but impossible."""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    greedy = {"do_sample": True, "top_k": 1, "top_p": 0.8, "temperature": 0.7, "repetition_penalty": 1.2}
    with serving(tmp_path_factory.mktemp("vllm"), greedy) as served:
        yield served


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    bare(monkeypatch, tmp_path)
    return Place(tmp_path, capsys)


def asked(url: str, **left_out: tuple[str, ...]) -> tuple[EndpointFeatures, DrawTest]:
    async def run() -> tuple[EndpointFeatures, DrawTest]:
        sampler = OpenAISampler(url, "base", renderer=load_renderer(ModelSpec(model="tiny")))
        features = await probe(sampler)
        sampler.features = features.model_copy(update=left_out)
        draws = await check_draws(sampler)
        await sampler.close()
        return features, draws

    return anyio.run(run)


def verified(place: Place, run: str) -> list[dict[str, Any]]:
    found = place.cuarl("rollout", "verify", run, "--json")
    assert found.code == 0, found.err
    return json.loads(found.out)


def models(url: str) -> list[str]:
    return [one["id"] for one in httpx.get(f"{url}/models").json()["data"]]


def test_a_model_does_not_decide_what_is_sampled(url: str) -> None:
    features, draws = asked(url)
    assert features == EndpointFeatures(token_ids=True, logprobs=True, scaled_logprobs=True, tokens_in=True, ours=True)
    assert draws.problem == "" and draws.positions > 20
    assert draws.power["top_k 1"] > 0.99


def test_a_model_that_decides_what_is_sampled_is_found_out(url: str) -> None:
    assert asked(url, left_out=tuple(NEUTRAL))[1].problem != ""


@pytest.mark.parametrize(
    "options", [(), ("--profile", "phone"), ("--history-images", "3", "--history-turns", "3")], ids=str
)
def test_recorded_logprobs_are_those_of_the_policy_here(options: tuple[str, ...], url: str, place: Place) -> None:
    """Placeholders are ruled out there, too, and screens that are no multiple of a token's side are sent resized."""
    done = place.cuarl(
        "rollout",
        "--tasks",
        "settings",
        "--limit",
        "4",
        "--group-size",
        "2",
        "--max-turns",
        "4",
        "--model-base-url",
        url,
        "--name",
        "r",
        *options,
    )
    assert done.code == 0, done.err
    (version,) = verified(place, "r")
    with place.store() as store:
        sampled = [t.sampled for e in store.trajectories() for t in e.turns]
    assert all(one.exact for one in sampled) and version["turns"] == len(sampled) > 8
    assert version["largest"] < LARGEST and version["mean"] < 2e-6


def test_adapters_are_loaded_and_forgotten_and_the_next_command_goes_on(url: str, place: Place) -> None:
    trained = place.cuarl(
        "train",
        "--tasks",
        "train_02_enable_wifi",
        "--model-base-url",
        url,
        "--group-size",
        "2",
        "--groups-per-batch",
        "1",
        "--max-turns",
        "3",
        "--max-steps",
        "2",
        "--save-every",
        "1",
        "--skip-baseline",
        "--eval-episodes",
        "1",
        "--name",
        "t",
    )
    assert trained.code == 0, trained.err
    assert "draws tested at" in trained.err
    assert models(url) == ["base"]
    versions = verified(place, "t")
    assert [v["policy_version"] for v in versions] == [0, 1, 2]
    assert max(v["largest"] for v in versions) < LARGEST
    again = place.cuarl(
        "rollout", "--tasks", "train_02_enable_wifi", "--model-base-url", url, "--max-turns", "1", "--name", "next"
    )
    assert again.code == 0, again.err


def test_an_adapter_that_the_server_has_no_room_for_is_refused_before_a_step(url: str, place: Place) -> None:
    refused = place.cuarl(
        "train",
        "--tasks",
        "train_02_enable_wifi",
        "--model-base-url",
        url,
        "--lora-rank",
        "32",
        "--max-steps",
        "1",
        "--name",
        "e",
    )
    assert refused.code == 4 and "--max-lora-rank 32" in refused.err
    assert models(url) == ["base"] and not (place.folder / "runs" / "e").exists()
