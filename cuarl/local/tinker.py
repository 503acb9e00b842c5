"""A Tinker-compatible server over our own policy: what the real SDK talks to in tests, and really learns.

It speaks the paths that an RL loop needs, orders the requests of a model by their sequence numbers, adds up gradients
over all chunks until ``optim_step``, and computes the losses by the service's definitions. ``faults`` make it fail.
What it is asked wrongly it refuses by status 400 to 499, or, where a request has its turn only later, by the failure of
its result.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from google.protobuf.message import DecodeError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from tinker.proto import tinker_public_pb2 as pb

from cuarl.local import tinker_bodies as bodies
from cuarl.local.threads import served
from cuarl.local.tinker_bodies import read_data, read_prompt, scored_row
from cuarl.policy.generate import generate
from cuarl.policy.inputs import Row
from cuarl.policy.jobs import Job
from cuarl.policy.load import load_policy
from cuarl.policy.score import Scorer
from cuarl.policy.spec import LoraSpec, ModelSpec
from cuarl.policy.transformers_policy import TransformersPolicy
from cuarl.web.guard import application, json_object, json_response
from cuarl.web.refusal import Refusal, detail, understood
from cuarl.web.rules import Rules

API = "/api/v1"
MAX_BODY = 64 << 20
Weights = dict[str, torch.Tensor]
MakePolicy = Callable[[int, int], TransformersPolicy]
"""A fresh policy with an adapter to train, of a rank and a seed."""


@dataclass
class Fault:
    """Answer the next ``times`` requests of ``path`` with ``status``, or their results with a ``failure``."""

    path: str
    status: int = 0
    times: int = 1
    failure: str = ""
    kind: str = ""
    """Only requests whose body has this type (``sample``, ``optim_step`` …), where it is set."""


@dataclass
class Model:
    """One model under training."""

    policy: TransformersPolicy
    optimizer: torch.optim.AdamW
    next_seq: int
    waiting: dict[int, tuple[str, Callable[[], Any]]] = field(default_factory=dict)
    updates: int = 0


class TinkerServer:
    """State and routes. ``log`` counts requests by path; ``chunks`` are the datums of each forward_backward request."""

    def __init__(self, make_policy: MakePolicy, *, chunk_bytes: int = 5_000_000, poll_s: float = 5.0) -> None:
        self._make, self._chunk_bytes, self._poll_s = make_policy, chunk_bytes, poll_s
        self.models: dict[str, Model] = {}
        self.states: dict[str, tuple[Weights, Any]] = {}
        self.samplers: dict[str, Weights | None] = {}
        self.results: dict[str, Any] = {}
        self.faults: list[Fault] = []
        self.log: dict[str, int] = defaultdict(int)
        self.chunks: list[int] = []
        self.keys: set[str] = set()
        self._kinds: dict[str, str] = {}
        self._count = 0
        self._sampling: TransformersPolicy | None = None
        self._loaded: object = self
        self._lock = threading.RLock()
        self._queue: list[tuple[str, str, Job, Row | None]] = []

    def app(self) -> Starlette:
        """The application."""
        posts: dict[str, Callable[[Any], Any]] = {
            "client/config": lambda b: {
                "fwdbwd_max_chunk_bytes_count": self._chunk_bytes,
                "use_pyqwest_transport": False,
            },
            "client/dynamic_config": lambda b: {},
            "create_session": lambda b: {"session_id": self._name("session")},
            "session_heartbeat": lambda b: {},
            "telemetry": lambda b: {"status": "accepted"},
            "create_model": self._create_model,
            "get_info": self._get_info,
            "optim_step": self._optim_step,
            "save_weights": self._save_weights,
            "save_weights_for_sampler": self._save_for_sampler,
            "create_sampling_session": self._sampling_session,
            "load_weights": self._load_weights,
            "asample": self._asample,
            "cancel_future": lambda b: {},
        }
        routes = [Route(f"{API}/{path}", self._json(path, work), methods=["POST"]) for path, work in posts.items()]
        routes += [
            Route(f"{API}/forward_backward", self._forward_backward, methods=["POST"]),
            Route(f"{API}/retrieve_future", self._retrieve, methods=["POST"]),
            Route(f"{API}/samplers/{{id}}", self._sampler, methods=["GET"]),
            Route(f"{API}/sessions/{{id}}/finish", self._json("finish", lambda b: {}), methods=["POST"]),
            Route(f"{API}/get_server_capabilities", self._capabilities, methods=["GET"]),
        ]
        return application(routes, Rules(say=detail, body_bytes=MAX_BODY))

    # --- requests and results --------------------------------------------------------------------------------------

    def _json(self, path: str, work: Callable[[Any], Any]) -> Callable[[Request], Any]:
        async def handle(request: Request) -> Response:
            self.log[path] += 1
            self.keys.add(request.headers.get("x-api-key", ""))
            self._refuse(self._fault(path))
            body = {} if path == "telemetry" else await json_object(request, empty=True)
            return json_response(await asyncio.to_thread(work, body))

        return handle

    def _refuse(self, fault: Fault | None) -> None:
        if fault is not None and fault.status:
            raise Refusal("injected", status=fault.status)

    def _fault(self, path: str, kind: str = "") -> Fault | None:
        for fault in self.faults:
            if fault.path == path and fault.times > 0 and fault.kind in ("", kind):
                fault.times -= 1
                return fault
        return None

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"{kind}-{self._count}"

    def _promise(self, kind: str, result: Any = None) -> dict[str, Any]:
        name = self._name("request")
        self._kinds[name] = kind
        if result is not None:
            self.results[name] = result
        return {"request_id": name}

    def _in_order(self, model_id: str, seq: int, kind: str, work: Callable[[], Any]) -> dict[str, Any]:
        """Do ``work`` when all requests of the model with lower numbers are done."""
        model = self._of(self.models, model_id, "model")
        promise = self._promise(kind)
        with self._lock:
            model.waiting[seq] = (promise["request_id"], work)
            while model.next_seq in model.waiting:
                name, ready = model.waiting.pop(model.next_seq)
                model.next_seq += 1
                fault = self._fault("result", self._kinds[name])
                self.results[name] = failed(fault.failure) if fault is not None and fault.failure else outcome(ready)
        return promise

    async def _retrieve(self, request: Request) -> Response:
        self.log["retrieve_future"] += 1
        body = await json_object(request)
        with understood():
            name = bodies.Retrieve.model_validate(body).request_id
        kind = self._of(self._kinds, name, "request")
        fault = self._fault("retrieve_future", kind)
        if fault is not None:
            return json_response({"detail": "injected", "queue_state": "active"}, fault.status)
        if name not in self.results and kind == "sample":
            await asyncio.sleep(0.01)  # others of the same moment are answered together
            await asyncio.to_thread(self._sample_all)
        end = time.monotonic() + self._poll_s
        while True:
            if name in self.results:
                found = self.results[name]
                if isinstance(found, bytes):
                    return Response(found, media_type="application/x-protobuf")
                return json_response(found)
            if time.monotonic() >= end:
                return json_response({"queue_state": "active"}, 408)
            await asyncio.sleep(0.05)

    def _of(self, things: Mapping[str, Any], name: str, what: str) -> Any:
        if name not in things:
            raise Refusal(f"there is no {what} {name[:80]!r}", status=404)
        return things[name]

    async def _capabilities(self, request: Request) -> Response:
        model = {"model_name": "tiny", "max_context_length": 8192, "trainable": True, "sampleable": True}
        return json_response({"supported_models": [model]})

    # --- training --------------------------------------------------------------------------------------------------

    def _create_model(self, body: Any) -> Any:
        with understood():
            asked = bodies.CreateModel.model_validate(body)
        model_id = f"{asked.session_id}:train:{asked.model_seq_id}"
        self.models[model_id] = self._model(asked.lora_config.rank, asked.lora_config.seed or 0, next_seq=1)
        return self._promise("create_model", {"model_id": model_id, "type": "create_model"})

    def _model(self, rank: int, seed: int, *, next_seq: int) -> Model:
        with self._lock:
            policy = self._make(rank, seed)
        return Model(policy, torch.optim.AdamW(list(policy.parameters()), lr=0.0), next_seq)

    def _get_info(self, body: Any) -> Any:
        with understood():
            model_id = bodies.OfModel.model_validate(body).model_id
        data = {"model_name": "tiny", "arch": "qwen3_vl", "tokenizer_id": "tiny"}
        return {
            "type": "get_info",
            "model_data": data,
            "model_id": model_id,
            "is_lora": True,
            "model_name": "tiny",
        }

    async def _forward_backward(self, request: Request) -> Response:
        self.log["forward_backward"] += 1
        self._refuse(self._fault("forward_backward"))
        message = pb.ForwardBackwardRequest()
        try:
            message.ParseFromString(await request.body())
        except DecodeError as error:
            raise Refusal(f"the body is no ForwardBackwardRequest: {error}") from None
        self.chunks.append(len(message.data))
        promise = await asyncio.to_thread(
            self._in_order,
            message.model_id,
            message.seq_id,
            "forward_backward",
            lambda: self._gradients(self.models[message.model_id], message),
        )
        return json_response(promise)

    def _gradients(self, model: Model, message: Any) -> Any:
        with understood():
            data = read_data(message, model.policy)
        config = {name: value.number for name, value in message.loss_fn_config_v2.items()}
        outputs, total = [], 0.0
        with torch.set_grad_enabled(not message.forward_only):
            for start in range(0, len(data), 32):
                part = data[start : start + 32]
                scores = Scorer(model.policy)(model.policy.collate([d.row for d in part]), 1.0).logprobs
                loss = torch.zeros(())
                for datum, logprobs in zip(part, scores, strict=True):
                    now = logprobs[: len(datum.row.answer_ids)]
                    loss = loss + service_loss(message.loss_fn, now, datum.inputs, config)
                    outputs.append(np.concatenate([np.zeros(datum.idle, np.float32), now.detach().numpy()]))
                if not torch.isfinite(loss):
                    raise Refusal("the loss is not finite")
                if not message.forward_only:
                    loss.backward()
                total += float(loss.detach())
        record = pb.ArrayRecord(num_datums=len(outputs))
        tensor = record.fields["logprobs"]
        tensor.data = b"".join(o.astype(np.float32).tobytes() for o in outputs)
        tensor.offsets = np.cumsum([0, *(4 * len(o) for o in outputs)], dtype=np.int64).tobytes()
        tensor.dtype = pb.DTYPE_FLOAT32
        reply = pb.ForwardBackwardOutput(loss_fn_output_type="ArrayRecord", loss_fn_outputs=[record])
        reply.metrics["loss:sum"] = total
        return reply.SerializeToString()

    def _optim_step(self, body: Any) -> Any:
        with understood():
            asked = bodies.OptimStep.model_validate(body)
        model, params = self._of(self.models, asked.model_id, "model"), asked.adam_params

        def step() -> Any:
            parameters = list(model.policy.parameters())
            if params.grad_clip_norm > 0:
                torch.nn.utils.clip_grad_norm_(parameters, params.grad_clip_norm)
            for group in model.optimizer.param_groups:
                group |= {
                    "lr": params.learning_rate,
                    "betas": (params.beta1, params.beta2),
                    "eps": params.eps,
                    "weight_decay": params.weight_decay,
                }
            model.optimizer.step()
            model.optimizer.zero_grad()
            model.updates += 1
            model.policy.updated()
            return {"metrics": {}}

        return self._in_order(asked.model_id, asked.seq_id, "optim_step", step)

    # --- weights ---------------------------------------------------------------------------------------------------

    def _save_weights(self, body: Any) -> Any:
        with understood():
            asked = bodies.SaveWeights.model_validate(body)
        model = self._of(self.models, asked.model_id, "model")
        path = f"tinker://{asked.model_id}/weights/{asked.path}"

        def save() -> Any:
            self.states[path] = (weights(model.policy), json_free_copy(model.optimizer.state_dict()))
            return {"path": path, "type": "save_weights"}

        return self._in_order(asked.model_id, asked.seq_id, "save_weights", save)

    def _save_for_sampler(self, body: Any) -> Any:
        with understood():
            asked = bodies.SaveForSampler.model_validate(body)
        model = self._of(self.models, asked.model_id, "model")

        def save() -> Any:
            if asked.path:
                path = f"tinker://{asked.model_id}/sampler_weights/{asked.path}"
                self.samplers[path] = weights(model.policy)
                return {"path": path, "type": "save_weights_for_sampler"}
            name = self._name("sampling")
            self.samplers[name] = weights(model.policy)
            return {"sampling_session_id": name, "type": "save_weights_for_sampler"}

        return self._in_order(asked.model_id, asked.seq_id, "save_weights_for_sampler", save)

    def _load_weights(self, body: Any) -> Any:
        with understood():
            asked = bodies.LoadWeights.model_validate(body)
        saved, optimizer = self._of(self.states, asked.path, "saved state")

        def load() -> Any:
            model = self.models[asked.into]
            if _rank(model.policy) != rank_of(saved):
                raise Refusal("the saved state is of another rank")
            put(model.policy, saved)
            model.policy.updated()
            if asked.optimizer:
                model.optimizer.load_state_dict(json_free_copy(optimizer))
            return {"path": asked.path, "model_id": asked.into, "type": "load_weights"}

        if asked.into not in self.models:
            self.models[asked.into] = self._model(rank_of(saved), 0, next_seq=1)
            return self._promise("load_weights", outcome(load))
        if asked.seq_id is None:
            raise Refusal("seq_id is missing")
        return self._in_order(asked.into, asked.seq_id, "load_weights", load)

    # --- sampling --------------------------------------------------------------------------------------------------

    def _sampling_session(self, body: Any) -> Any:
        with understood():
            path = bodies.SamplingSession.model_validate(body).model_path
        saved = self.samplers | {name: state for name, (state, _) in self.states.items()}
        found = self._of(saved, path, "saved weights") if path else None
        name = self._name("sampling")
        self.samplers[name] = found
        return {"type": "create_sampling_session", "sampling_session_id": name}

    async def _sampler(self, request: Request) -> Response:
        return json_response({"sampler_id": request.path_params["id"], "base_model": "tiny"})

    def _asample(self, body: Any) -> Any:
        with understood():
            asked = bodies.Sample.model_validate(body)
            params = asked.sampling_params
            chunks = [chunk.model_dump() for chunk in asked.prompt.chunks]
            prompt = read_prompt(chunks, self._sampling_policy(None), params.max_tokens)
            job = Job(prompt, *params.made())
            scored = None
            if asked.prompt_logprobs:
                scored = scored_row(prompt, asked.prompt_logprobs_last_n, self._sampling_policy(None))
        self._of(self.samplers, asked.sampling_session_id, "session")
        promise = self._promise("sample")
        fault = self._fault("result", "sample")
        if fault is not None and fault.failure:
            self.results[promise["request_id"]] = failed(fault.failure)
        else:
            with self._lock:
                self._queue.append((promise["request_id"], asked.sampling_session_id, job, scored))
        return {**promise, "sample_sequence_ids": [self._name("sequence") for _ in range(asked.num_samples)]}

    def _sampling_policy(self, wanted: Weights | None) -> TransformersPolicy:
        """A policy that weights of this rank can be put into."""
        with self._lock:  # models can't be loaded by several threads at once
            there = self._sampling
            if there is None or (wanted is not None and _rank(there) != rank_of(wanted)):
                rank = rank_of(wanted) if wanted else next((_rank(m.policy) for m in self.models.values()), 8)
                self._sampling, self._loaded = self._make(rank, 0), self
            assert self._sampling is not None
            return self._sampling

    def _sample_all(self) -> None:
        with self._lock:
            taken, self._queue = self._queue, []
            for session in dict.fromkeys(s for _, s, _, _ in taken):
                policy = self._sampling_policy(self.samplers[session])
                self._load_for_sampling(policy, self.samplers[session])
                mine = [(name, job, row) for name, s, job, row in taken if s == session]
                answers = generate(policy, [job for _, job, _ in mine])
                for (name, _, row), sampled in zip(mine, answers, strict=True):
                    reply = pb.SampleResponse()
                    if row is not None:
                        reply.prompt_logprobs = prompt_logprobs(policy, row)
                    sequence = reply.sequences.add()
                    sequence.stop_reason = pb.STOP_REASON_LENGTH if sampled.stop == "length" else pb.STOP_REASON_STOP
                    sequence.tokens = np.asarray(sampled.token_ids, np.int32).tobytes()
                    sequence.logprobs = np.asarray(sampled.logprobs, np.float32).tobytes()
                    self.results[name] = reply.SerializeToString()

    def _load_for_sampling(self, policy: TransformersPolicy, wanted: Weights | None) -> None:
        if self._loaded is wanted:
            return
        if wanted is None:
            with torch.no_grad():
                for name, p in policy.model.named_parameters():
                    if "lora_B" in name:
                        p.zero_()
        else:
            put(policy, wanted)
        policy.updated()
        self._loaded = wanted


# --- parts ---------------------------------------------------------------------------------------------------------


def failed(why: str) -> dict[str, str]:
    """A result that is a failure of the client's."""
    return {"error": why, "category": "user"}


def outcome(work: Callable[[], Any]) -> Any:
    """The result of ``work``; what is refused only when it is a request's turn fails by its result."""
    try:
        return work()
    except Refusal as refusal:
        return failed(refusal.what)


def service_loss(
    name: str, logprobs: torch.Tensor, inputs: Mapping[str, torch.Tensor], config: Mapping[str, float]
) -> Any:
    """The service's definitions: sums over tokens, absolute bounds of the ratio."""
    if name == "cross_entropy":
        return -(logprobs * inputs["weights"]).sum()
    advantages = inputs["advantages"]
    ratio = (logprobs - inputs["logprobs"]).exp()
    if name == "importance_sampling":
        return -(ratio * advantages).sum()
    defaults = (0.8, 1.2) if name == "ppo" else (0.0, 4.0)
    low, high = (config.get(f"clip_{k}_threshold", d) for k, d in zip(("low", "high"), defaults, strict=True))
    clipped = ratio.clamp(low, high)
    if name == "cispo":
        return -(clipped.detach() * logprobs * advantages).sum()
    return -torch.minimum(ratio * advantages, clipped * advantages).sum()


def prompt_logprobs(policy: TransformersPolicy, row: Row) -> bytes:
    """Log-probabilities of what is scored of a prompt, one float32 a token; no number for the others."""
    with torch.no_grad():
        (found,) = Scorer(policy)(policy.collate([row]), 1.0).logprobs
    return np.concatenate([np.full(len(row.prompt_ids), np.nan), found.numpy()]).astype(np.float32).tobytes()


def weights(policy: TransformersPolicy) -> Weights:
    """A copy of the adapter's tensors."""
    return {n: p.detach().clone() for n, p in policy.model.named_parameters() if ".lora_" in n}


def put(policy: TransformersPolicy, saved: Weights) -> None:
    """Give the adapter saved tensors."""
    with torch.no_grad():
        for name, p in policy.model.named_parameters():
            if ".lora_" in name:
                p.copy_(saved[name])


def json_free_copy(state: Any) -> Any:
    """A copy of nested containers and their tensors."""
    return torch.utils._pytree.tree_map(lambda v: v.clone() if isinstance(v, torch.Tensor) else v, state)


def rank_of(saved: Weights) -> int:
    """The rank of an adapter's tensors."""
    return next(int(tensor.shape[0]) for name, tensor in saved.items() if "lora_A" in name)


def _rank(policy: TransformersPolicy) -> int:
    return int(next(p.shape[0] for n, p in policy.model.named_parameters() if "lora_A" in n))


def served_base(model: str = "tiny", **options: Any) -> TinkerServer:
    """A server that trains and samples a base, by default the shipped one; ``options`` are the server's."""

    def make(rank: int, seed: int) -> TransformersPolicy:
        return load_policy(ModelSpec(model=model, lora=LoraSpec(rank=rank, seed=seed), train="adapter"))

    return TinkerServer(make, **options)


@contextmanager
def running(server: TinkerServer) -> Iterator[str]:
    """Serve on a free port in a thread; gives the base URL."""
    with served(server.app()) as url:
        yield url
