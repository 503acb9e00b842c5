"""The stand-in for Tinker's service: its routes, and a course of training before which most requests could only be
refused."""

from __future__ import annotations

from typing import Any

import httpx
import numpy as np
from tinker.proto import tinker_public_pb2 as pb

from cuarl.local.tinker import API, TinkerServer, served_base
from tests.fuzz.requests import Shape
from tests.fuzz.servers import Names, Target

MODEL = {"model_id": "s:train:0"}
STATE, SAMPLER = "tinker://s:train:0/weights/p", "tinker://s:train:0/sampler_weights/p"
ADAM = {"learning_rate": 1e-3, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.0, "grad_clip_norm": 1.0}
PARAMS = {"max_tokens": 2, "temperature": 1.0, "top_p": 1.0, "top_k": -1, "seed": 1}
KEY = {"X-API-Key": "key-of-the-fuzzed-server"}
IDS = [5, 6, 7, 8]


def gradients(seq: int, loss: str = "ppo") -> bytes:
    """A request of one example, the last two of whose tokens are trained."""
    message = pb.ForwardBackwardRequest(model_id=MODEL["model_id"], seq_id=seq, loss_fn=loss)
    datum = message.data.add()
    datum.model_input.add().encoded_text.tokens = np.asarray(IDS, np.int32).tobytes()
    inputs = {
        "target_tokens": np.asarray([*IDS[1:], 9], np.int64),
        "weights": np.asarray([0, 0, 1, 1], np.float32),
        "advantages": np.asarray([0, 0, 0.5, -0.5], np.float32),
        "logprobs": np.full(4, -2, np.float32),
    }
    for name, values in inputs.items():
        tensor = datum.loss_fn_inputs[name]
        tensor.dense, tensor.dtype = values.tobytes(), pb.DTYPE_INT64 if values.dtype == np.int64 else pb.DTYPE_FLOAT32
    return message.SerializeToString()


CREATE = Shape(
    "POST", f"{API}/create_model", {"session_id": "s", "model_seq_id": 0, "lora_config": {"rank": 4, "seed": 1}}
)
SAMPLE = {"prompt": {"chunks": [{"type": "encoded_text", "tokens": IDS}]}, "sampling_params": PARAMS, "num_samples": 1}
COURSE = (
    CREATE, Shape("POST", f"{API}/forward_backward", gradients(1)),
    Shape("POST", f"{API}/optim_step", {**MODEL, "seq_id": 2, "adam_params": ADAM}),
    Shape("POST", f"{API}/save_weights", {**MODEL, "seq_id": 3, "path": "p"}),
    Shape("POST", f"{API}/save_weights_for_sampler", {**MODEL, "seq_id": 4, "path": "p"}),
    Shape("POST", f"{API}/load_weights", {**MODEL, "seq_id": 5, "path": STATE, "optimizer": True}),
)  # fmt: skip
"""In the order of their numbers, after which all that they name is there."""
SHAPES = (
    *COURSE, *(Shape("POST", f"{API}/forward_backward", gradients(seq, loss)) for seq,
        loss in ((6, "cispo"), (7, "cross_entropy"))),
    Shape("POST", f"{API}/optim_step", {**MODEL, "seq_id": 6, "adam_params": ADAM}),
    Shape("POST", f"{API}/get_info", MODEL),
    Shape("POST", f"{API}/save_weights_for_sampler", {**MODEL, "seq_id": 6}),
    Shape("POST", f"{API}/load_weights", {"session_id": "s", "model_seq_id": 1, "path": STATE, "optimizer": False}),
    Shape("POST", f"{API}/create_sampling_session", {"model_path": SAMPLER}),
    Shape("POST", f"{API}/create_session", {}),
    *(Shape("POST", f"{API}/asample", {**SAMPLE, "sampling_session_id": name}) for name in (SAMPLER, "sampling-9")),
    *(Shape("POST", f"{API}/retrieve_future", {"request_id": f"request-{number}"}) for number in (1, 2, 7, 19, 40, 80)),
    Shape("POST", f"{API}/session_heartbeat", {}), Shape("POST", f"{API}/telemetry", {}),
    Shape("GET", f"{API}/samplers/{{id}}"),
    Shape("POST", f"{API}/sessions/{{id}}/finish", {}), Shape("GET", f"{API}/get_server_capabilities"),
    Shape("POST", f"{API}/client/config", {}),
)  # fmt: skip


class TinkerTarget(Target):
    """It has no token: whatever key its clients send, it notes."""

    name, alive, shapes = "tinker", f"{API}/get_server_capabilities", SHAPES
    headers = KEY

    def app(self) -> tuple[Any, Names]:
        server: TinkerServer = served_base(poll_s=0.05)
        return server.app(), lambda: {"id": list(server.samplers)[-3:]}

    def prepare(self, url: str) -> None:
        for shape in COURSE:
            body = {"content": shape.body} if isinstance(shape.body, bytes) else {"json": shape.body}
            httpx.post(url + shape.path, headers=dict(self.headers), timeout=60, **body).raise_for_status()

    def after(self, url: str, count: int) -> list[str]:
        """It still trains and samples."""
        self.prepare(url)
        with httpx.Client(base_url=url + API, timeout=60) as client:
            asked = client.post("/asample", json={**SAMPLE, "sampling_session_id": SAMPLER})
            found = client.post("/retrieve_future", json={"request_id": asked.json().get("request_id", "")})
        kind = found.headers.get("content-type", "")
        faults = [] if "protobuf" in kind else [f"afterwards nothing is sampled: {asked.text[:200]} {found.text[:200]}"]
        return [*super().after(url, count), *faults]
