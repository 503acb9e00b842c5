"""What each server is asked when it is asked rightly."""

from __future__ import annotations

from PIL import Image

from cuarl.env.pods.manifest import load as load_manifest
from cuarl.local.gym import BOXES
from cuarl.local.wire import png_uri
from cuarl.tasks.task import Check, TaskInstance
from cuarl.types import Screenshot
from tests.fuzz.requests import Shape

TOKEN = "token-of-the-fuzzed-server"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
TASK = TaskInstance(task_id="wifi", goal="Turn Wi-Fi off.", checks=(Check(path="network.wifi.enabled", value=False),))
PNG = png_uri(Screenshot(Image.new("RGB", (36, 64), "white")))
ACT = {
    "action_type": ("screenshot", "left_click", "type", "keys", "scroll", "mouse_move", "x"), "x": ("5", "100"),
    "y": ("5", "90"),
    "text": ("abc",), "keys": ("ctrl+a", "enter", "+"), "direction": ("up", "down", "left"), "delay": ("0", "0.01"),
    "action": ('{"kind":"click","x":5,"y":5}', '{"kind":"swipe","x":5,"y":5,"x2":9,"y2":9}',
        '{"kind":"wait","seconds":NaN}',
               '{"kind":"drag","path":[]}', '{"kind":"type","text":"\\ud800"}', "[" * 2000, '{"kind":["x"]}'),
}  # fmt: skip

USER = {
    "role": "user",
    "content": [{"type": "text", "text": "go"}, {"type": "image_url", "image_url": {"url": PNG}}],
}
TOOL = {"type": "function", "function": {"name": "tap", "description": "d", "parameters": {"type": "object"}}}
CHAT = {
    "model": "tiny", "messages": [{"role": "system", "content": "s"}, USER], "max_tokens": 2, "temperature": 1,
    "top_p": 1,
    "top_k": 0, "seed": 1, "stop": ["x"], "stream": False, "stream_options": {"include_usage": True}, "logprobs": True,
    "return_token_ids": True, "tools": [TOOL], "tool_choice": "auto", "n": 1, "logit_bias": {},
    "response_format": {"type": "text"},
}  # fmt: skip
HISTORY = {
    **CHAT,
    "messages": [
        USER,
        {
            "role": "assistant",
            "content": "a",
            "tool_calls": [{"id": "c", "type": "function", "function": {"name": "tap", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "ok"},
        USER,
    ],
}
RESPONSES = {
    "model": "tiny", "instructions": "i", "max_output_tokens": 2, "stream": False, "include": [], "store": True,
    "input": [{"role": "user",
            "content": [{"type": "input_text", "text": "go"}, {"type": "input_image", "image_url": PNG}]},
              {"type": "function_call", "call_id": "c", "name": "tap", "arguments": "{}"},
              {"type": "function_call_output", "call_id": "c", "output": "ok"}],
}  # fmt: skip
SERVE = (
    Shape("POST", "/v1/chat/completions", CHAT), Shape("POST", "/v1/chat/completions", HISTORY),
    Shape("POST", "/v1/responses", RESPONSES),
    Shape("POST", "/sessions/{session}/v1/chat/completions", CHAT),
    Shape("POST", "/sessions/{session}/v1/responses", {**RESPONSES, "stream": True}),
    Shape("POST", "/sessions/{session}/v1/chat/completions", {**CHAT, "stream": True}), Shape("GET", "/v1/models"),
    Shape("GET", "/v1/models/{model}"),
    Shape("PUT", "/sessions/{session}",
        {"task_id": "t", "goal": "g", "attempt": 0, "seed": 1, "sampling_seed": 2, "info": {"a": [1.5]}}),
    Shape("GET", "/sessions/{session}"),
    Shape("POST", "/sessions/{session}/end",
    {"stop": "done", "success": True, "score": 1.0, "reward": 0.5, "info": {"a": 1.5}}),
    Shape("POST", "/v1/load_lora_adapter", {"lora_name": "a", "lora_path": "/x", "load_inplace": True}),
    Shape("POST", "/v1/unload_lora_adapter", {"lora_name": "a"}), Shape("GET", "/health"),
)  # fmt: skip

SERVE_ENV = (
    Shape("GET", "/health"), Shape("GET", "/metadata"), Shape("GET", "/schema"), Shape("GET", "/list_environments"),
    Shape("GET", "/{env}/splits"),
    Shape("POST", "/{env}/tasks", {"split": "train"}), Shape("POST", "/{env}/num_tasks", {"split": "train"}),
    Shape("POST", "/{env}/task", {"split": "train", "index": 0}),
    Shape("POST", "/{env}/task_range", {"split": "train", "start": 0, "stop": 1}), Shape("GET", "/ws"),
)  # fmt: skip

SESSION = (
    Shape("GET", "/act", query=ACT), Shape("GET", "/act", query=ACT), Shape("GET", "/act", query=ACT),
    Shape("GET", "/progress"), Shape("GET", "/state"),
    Shape("GET", "/oracle"), Shape("GET", "/"), Shape("POST", "/reset", {"task": TASK.model_dump_json(), "seed": 1}),
)  # fmt: skip

_BOXES = "/api/v1/boxes"
GBOX = (
    Shape("POST", "/api/v1/model", {"model": "m", "screenshot": PNG, "action": {"type": "click", "target": "Wi-Fi"}}),
    Shape("GET", _BOXES, query={"page": ("1", "2"), "pageSize": ("10",)}),
    Shape("POST", f"{_BOXES}/{{type}}", {"config": {"expiresIn": "60m", "labels": {"a": "b"}}, "wait": True}),
    Shape("GET", f"{_BOXES}/{{id}}"), Shape("GET", f"{_BOXES}/{{id}}/display"),
    Shape("POST", f"{_BOXES}/{{id}}/terminate", {}),
    Shape("POST", f"{_BOXES}/{{id}}/commands",
        {"command": "cuarl-device reset", "envs": {"CUARL_TASK": TASK.model_dump_json(), "CUARL_SEED": "1"}}),
    Shape("POST", f"{_BOXES}/{{id}}/commands", {"command": "cuarl-device oracle"}),
    Shape("POST", f"{_BOXES}/{{id}}/commands", {"command": "sleep 1"}),
    Shape("POST", f"{_BOXES}/{{id}}/commands", {"command": "settings put a b c"}),
    Shape("POST", f"{_BOXES}/{{id}}/actions/screenshot", {"outputFormat": "base64"}),
    Shape("GET", f"{_BOXES}/{{id}}/actions/screen-layout"),
    Shape("POST", f"{_BOXES}/{{id}}/actions/elements/detect", {"screenshot": {"outputFormat": "base64"}}),
    *(Shape("POST", f"{_BOXES}/{{id}}/actions/{route}", body) for route, body in {
        "click": {"x": 5, "y": 5, "button": "left", "double": False}, "tap": {"x": 5, "y": 5},
        "long-press": {"x": 5, "y": 5, "duration": "1s"},
        "swipe": {"start": {"x": 5, "y": 50}, "end": {"x": 5, "y": 9}, "duration": "300ms"},
        "drag": {"path": [{"x": 5, "y": 5}, {"x": 9, "y": 9}], "duration": "50ms"},
        "scroll": {"x": 5, "y": 5, "scrollX": 0, "scrollY": 100}, "type": {"text": "a", "pressEnter": True},
        "press-key": {"keys": ["enter"]},
        "press-button": {"buttons": ["home"]}, "move": {"x": 5, "y": 5},
        "screen-rotation": {"orientation": "landscapeLeft"}, "{route}": {},
    }.items()),
)  # fmt: skip

_GYM = "/api/v1/a-gym"
GYM = (
    Shape("GET", f"{_GYM}/tasks"),
    Shape("GET", f"{_GYM}/tasks/{{task}}"),
    Shape("POST", f"{_GYM}/tasks/{{task}}", {"options": {"seed": 1}}),
    Shape("POST", f"{_GYM}/executions/{{id}}/evaluate", {"answer_text": "a"}),
    Shape("POST", f"{_GYM}/executions/{{id}}/terminate", {}),
    Shape("GET", "/fake/executions/{id}"),
    Shape("GET", f"/gbox{BOXES.removeprefix('/gbox')}/boxes"),
)

ORDER = {
    "task": "t", "agent": "a", "maxSteps": 1, "maxRunTimeSec": 1,
    "model": {"baseUrl": "http://127.0.0.1:9/v1", "name": "n", "provider": "openai"},
    "env": {"type": "genv", "gymBaseUrl": "http://127.0.0.1:9", "gymId": "g", "executionId": "e"},
    "standardActionSpace": "mobile",
}  # fmt: skip
MINI_AGENT = (
    Shape("POST", "/runs", ORDER), Shape("GET", "/runs/{id}"), Shape("GET", "/runs/{id}/steps"),
    Shape("GET", "/runs/{id}/steps/{index}"),
    Shape("GET", "/runs/{id}/events", query={"from": ("0", "1.5"), "to": ("9",)}),
)  # fmt: skip

_PODS = "/api/v1/namespaces/{namespace}/pods"
POD = load_manifest().pod({"session_id": "0a1b2c3d", "session_type": "phone", "image": "i", "token": "t"}, "lease", 60)
KUBERNETES = (
    Shape("POST", _PODS, {**POD, "metadata": {**POD["metadata"], "name": "session-0a1b2c3d"}}),
    Shape("GET", _PODS, query={"labelSelector": ("a=b", "a")}),
    Shape("GET", f"{_PODS}/{{name}}"),
    Shape("DELETE", f"{_PODS}/{{name}}", {"gracePeriodSeconds": 0, "preconditions": {"uid": "x"}}),
    Shape("GET", f"{_PODS}/{{name}}:{{port}}/proxy/act", query=ACT),
    Shape("POST", f"{_PODS}/{{name}}:{{port}}/proxy/reset", {"task": TASK.model_dump_json(), "seed": 1}),
    Shape("GET", "/proxy/{session}/act", query=ACT), Shape("GET", "/proxy/{session}"), Shape("GET", "/version"),
    Shape("GET", "/api/v1"), Shape("GET", "/apis"),
    Shape("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
          {"kind": "SelfSubjectAccessReview",
              "spec": {"resourceAttributes": {"verb": "get", "resource": "pods", "subresource": "proxy",
              "namespace": "n"}}}),
)  # fmt: skip

MESSAGES = (
    {"type": "reset", "data": {"task": "wifi", "seed": 1, "episode_id": "e"}},
    {"type": "step", "data": {"kind": "click", "x": 5, "y": 5, "metadata": {}}},
    {"type": "step", "data": {"kind": "swipe", "x": 5, "y": 5, "x2": 9, "y2": 9, "duration_ms": 100}},
    {"type": "step", "data": {"kind": "type", "text": "a", "submit": True}},
    {"type": "step", "data": {"kind": "drag", "path": [[1, 1], [2, 2]]}}, {"type": "step", "data": {"kind": "finish"}},
    {"type": "state"},
)  # fmt: skip
"""Of a session of OpenEnv."""
