"""The pure parts of pod sessions: words, progress, manifests, what a pod's status says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuarl.env.linux.env import ACTIONS as LINUX
from cuarl.env.pods import actions, devices, progress
from cuarl.env.pods.manifest import LEASE, OWNER, load
from cuarl.env.pods.progress import Progress
from cuarl.env.pods.status import is_ready, stage, trouble
from cuarl.env.sim.devices import make_sim
from cuarl.errors import ConfigError, EnvError
from cuarl.types import (
    Answer,
    Button,
    Click,
    Drag,
    Finish,
    Key,
    LongPress,
    Move,
    OpenApp,
    Scroll,
    Swipe,
    TypeText,
    Wait,
)

VALUES = {"session_id": "0a1b2c3d", "session_type": "phone", "image": "repo/image:1", "token": "se${cret"}
PLAIN = [
    Click(x=3, y=4), Click(x=3, y=4, count=2), Click(x=3, y=4, count=3), Click(x=3, y=4, button="right"),
    Move(x=0, y=9),
    TypeText(text="ä & b=c%20+"), Scroll(x=5, y=6, direction="up", amount=3, unit="notch"),
    Scroll(direction="down", amount=3, unit="notch"),
]  # fmt: skip
RICH = [
    *PLAIN, LongPress(x=1, y=2, duration_ms=700), Swipe(x=1, y=2, x2=3, y2=40), Drag(path=((1, 2), (3, 4), (5, 6))),
    Scroll(direction="left", amount=90), TypeText(text="x" * 500, submit=True), Key(keys=("ctrl", "plus")),
    Key(keys=("+",)),
    Button(name="recents"), OpenApp(name="Files"), Wait(seconds=2), Answer(text="42"), Click(x=1, y=1, button="middle"),
]  # fmt: skip


# --- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", PLAIN, ids=str)
def test_action_means_the_same_on_the_other_side(action):
    (query,) = actions.queries(action)
    assert "action" not in query, "the protocol has words for it"
    assert actions.read(query) == action


@pytest.mark.parametrize("action", RICH, ids=str)
def test_our_server_understands_every_action(action):
    (query,) = actions.queries(action, own=True)
    assert actions.read(query) == action


@given(st.text(max_size=1700))
def test_long_text_is_typed_in_pieces_that_make_the_whole(text):
    sent = [actions.read(query) for query in actions.queries(TypeText(text=text, submit=True))]
    assert sent[-1] == Key(keys=("enter",))
    assert "".join(piece.text for piece in sent[:-1]) == text


@pytest.mark.parametrize("size", [1, 500, 501, 1700])
def test_b25_long_text_reaches_our_server_in_pieces_that_an_address_holds(size):
    text = "aä" * size
    sent = [actions.read(query) for query in actions.queries(TypeText(text=text[:size], submit=True), own=True)]
    assert "".join(piece.text for piece in sent) == text[:size]
    assert [piece.submit for piece in sent] == [False] * (len(sent) - 1) + [True]
    assert max(len(piece.text) for piece in sent) <= actions.CHUNK


@pytest.mark.parametrize(
    ("keys", "sent"),
    [(("ctrl", "c"), "ctrl+c"), (("Page_Up",), "pageup"), (("ctrl", "+"), "ctrl++"), (("+",), "+"), (("F5",), "f5")],
)
def test_keys_are_joined_as_the_protocol_has_them(keys, sent):
    (query,) = actions.queries(Key(keys=keys))
    assert query["keys"] == sent
    assert actions.read(query) == Key(keys=tuple(key.replace("_", "").lower() for key in keys))


def test_b27_capital_is_typed_since_names_of_keys_are_in_lower_case():
    assert actions.queries(Key(keys=("A",))) == [{"action_type": "type", "text": "A"}]
    assert actions.queries(Key(keys=("ctrl", "A"))) == [{"action_type": "keys", "keys": "ctrl+a"}]


def test_scrolls_go_in_steps_of_three_notches():
    assert len(actions.queries(Scroll(direction="down", amount=300))) == 2
    assert len(actions.queries(Scroll(direction="down", amount=10))) == 1
    assert len(actions.queries(Scroll(direction="up", amount=9, unit="notch"))) == 3


def test_actions_without_a_part_for_the_session_are_not_sent():
    assert actions.queries(Wait(seconds=1)) == actions.queries(Answer(text="x")) == actions.queries(Finish()) == []
    assert actions.queries(Finish(), own=True) == []


@pytest.mark.parametrize(
    "query",
    [{}, {"action_type": "left_click", "x": "1"}, {"action_type": "left_click", "x": "a", "y": "1"},
     {"action_type": "left_click", "x": "-1", "y": "1"}, {"action_type": "scroll", "direction": "sideways"},
     {"action_type": "fly"}, {"action_type": "click", "action": "{"}, {"action_type": "type"}],
)  # fmt: skip
def test_queries_that_mean_nothing_raise(query):
    with pytest.raises((KeyError, ValueError)):
        actions.read(query)


def test_kinds_are_those_of_the_devices():
    assert devices.KINDS["linux"].actions == LINUX
    for kind in ("phone", "desktop"):
        capabilities = make_sim(kind).capabilities
        assert devices.KINDS[kind].actions == capabilities.actions
        assert devices.KINDS[kind].vocabulary == capabilities.kind


# --- progress --------------------------------------------------------------------------------------------------------


def test_progress_is_read_in_both_forms():
    earlier = progress.read({"num_correct_submissions": 2, "num_incorrect_submissions": 1})
    assert earlier == Progress(2, 1)
    assert "submitted_row_indices" not in earlier.state()
    later = progress.read({"submitted_row_indices": [4, 0, 7], "num_incorrect_submissions": 1})
    assert later == Progress(3, 1, (0, 4, 7))
    assert later.state() == {
        "num_correct_submissions": 3,
        "num_incorrect_submissions": 1,
        "submitted_row_indices": [0, 4, 7],
    }
    assert later.reward_since(earlier) == 1.0
    assert earlier.reward_since(earlier) == later.reward_since(later) == -0.01


@pytest.mark.parametrize(
    "body",
    [{}, {"num_correct_submissions": "2"}, {"num_correct_submissions": -1}, {"num_correct_submissions": True},
     {"submitted_row_indices": 3}, {"submitted_row_indices": [1, "2"]}, {"detail": "Not Found"}],
)  # fmt: skip
def test_progress_that_tells_nothing_is_an_error(body):
    with pytest.raises(EnvError, match="/progress tells"):
        progress.read(body)


# --- manifests -------------------------------------------------------------------------------------------------------


def test_shipped_manifest_is_filled_in_and_owned():
    pod = load().pod(VALUES, "ab" * 12, 1800)
    container = pod["spec"]["containers"][0]
    assert pod["metadata"]["name"] == "session-0a1b2c3d"
    assert pod["metadata"]["labels"]["app"] == "cuarl-session"
    assert pod["metadata"]["labels"]["session-id"] == "0a1b2c3d"
    assert pod["metadata"]["labels"][LEASE] == "ab" * 12
    assert pod["metadata"]["labels"][OWNER]
    assert pod["spec"]["activeDeadlineSeconds"] == 1800
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert container["image"] == "repo/image:1" and "phone" in container["args"]
    assert container["env"] == [{"name": "CUARL_SESSION_TOKEN", "value": "se${cret"}], "values are not filled in again"
    assert load().port == 8000


def test_own_manifest_keeps_what_it_says(tmp_path):
    path = tmp_path / "pod.yaml"
    path.write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: x, namespace: y, labels: {app: simple-data-entry}}\n"
        "spec:\n  activeDeadlineSeconds: 60\n  containers:\n"
        "  - {name: a, image: 'reg/${session_type}', args: [$(HOME), $x], ports: [{containerPort: 9000}]}\n"
    )
    template = load(path)
    pod = template.pod(VALUES, "l", 1800)
    assert template.port == 9000
    assert pod["metadata"]["labels"]["app"] == "simple-data-entry" and "namespace" not in pod["metadata"]
    assert pod["spec"]["activeDeadlineSeconds"] == 60, "the shorter one"
    assert pod["spec"]["containers"][0]["image"] == "reg/phone"
    assert pod["spec"]["containers"][0]["args"] == ["$(HOME)", "$x"], "Kubernetes' own"
    assert template.pod(VALUES, "l", 30)["spec"]["activeDeadlineSeconds"] == 30


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("kind: Deployment\napiVersion: apps/v1\n", "one Pod of apiVersion v1"),
        ("apiVersion: v1\nkind: Pod\n", "no spec"),
        ("apiVersion: v1\nkind: Pod\nspec: {containers: []}\n", "no spec.containers"),
        ("apiVersion: v1\nkind: Pod\nspec: {restartPolicy: Always, containers: [{name: a}]}\n", "must be Never"),
        ("apiVersion: v1\nkind: Pod\nspec: {containers: [{name: '${sesion}'}]}\n", r"\$\{sesion\} is unknown"),
        ("a: [", "no YAML"),
    ],
)
def test_manifest_that_can_not_be_used_says_why(text, says, tmp_path):
    (tmp_path / "pod.yaml").write_text(text)
    with pytest.raises(ConfigError, match=says):
        load(tmp_path / "pod.yaml")
    with pytest.raises(ConfigError, match="can't be read"):
        load(tmp_path / "none.yaml")


# --- status ----------------------------------------------------------------------------------------------------------


def pod_that(phase="Pending", *, conditions=(), state=None, reason=None, deleted=False):
    status = {"phase": phase, "conditions": list(conditions), "reason": reason}
    if state:
        status["containerStatuses"] = [{"state": state}]
    return {"metadata": {"deletionTimestamp": "now"} if deleted else {}, "status": status}


def prepared(init, main=None, *, phase="Pending"):
    """A pod whose init container ``fetch-data`` is in a state, and its main one."""
    states = [
        ("initContainerStatuses", "fetch-data", init),
        ("containerStatuses", "session", main or {"waiting": INIT}),
    ]
    return {"metadata": {}, "status": {"phase": phase, **{k: [{"name": n, "state": s}] for k, n, s in states}}}


INIT = {"reason": "PodInitializing"}
NO_IMAGE = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "registry.example/none:7"'}


def test_ready_is_what_the_probe_says():
    assert is_ready(pod_that("Running", conditions=[{"type": "Ready", "status": "True"}]))
    assert not is_ready(pod_that("Running", conditions=[{"type": "Ready", "status": "False"}]))
    assert not is_ready({})


@pytest.mark.parametrize(
    ("pod", "says"),
    [
        (
            pod_that("Failed", state={"terminated": {"reason": "OOMKilled", "exitCode": 137}}),
            "OOMKilled with exit code 137",
        ),
        (pod_that("Failed", reason="Evicted"), "it has failed (Evicted)"),
        (pod_that("Succeeded"), "it has ended (no reason given)"),
        (pod_that(state={"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}), "no such image"),
        (pod_that("Running", state={"terminated": {"reason": "Error", "exitCode": 1}}), "Error with exit code 1"),
        (pod_that("Running", deleted=True), "being deleted"),
    ],
)
def test_trouble_is_named(pod, says):
    assert says in trouble(pod)


@pytest.mark.parametrize(
    ("pod", "says"),
    [
        (prepared({"waiting": NO_IMAGE}), "init container fetch-data can't run: ImagePullBackOff: Back-off pulling"),
        (
            prepared({"waiting": {"reason": "CreateContainerConfigError"}}),
            "fetch-data can't run: CreateContainerConfigError",
        ),
        (prepared({"waiting": {"reason": "CrashLoopBackOff"}}), "fetch-data can't run: CrashLoopBackOff"),
        (prepared({"terminated": {"reason": "Error", "exitCode": 3}}), "fetch-data can't run: Error with exit code 3"),
        (
            prepared({"terminated": {"reason": "Error", "exitCode": 3}}, phase="Failed"),
            "it has failed (init container fetch-data: Error with exit code 3)",
        ),
        (
            prepared({"terminated": {"exitCode": 0}}, {"waiting": {"reason": "CrashLoopBackOff"}}),
            "its container can't run: CrashLoopBackOff",
        ),
    ],
)  # fmt: skip
def test_b13_init_container_that_can_not_start_is_named_at_once(pod, says):
    assert says in trouble(pod)


@pytest.mark.parametrize(
    ("pod", "says"),
    [
        (prepared({"waiting": {"reason": "ErrImagePull"}}), "its init container fetch-data waits: ErrImagePull"),
        (prepared({"running": {}}), "its init container fetch-data is running"),
        (
            prepared({"terminated": {"exitCode": 0}}, {"waiting": {"reason": "ContainerCreating"}}),
            "its container waits",
        ),
        (prepared({"running": {}}, {"running": {}}, phase="Running"), "it is running, but not ready"),
    ],
)
def test_b13_init_container_that_prepares_is_waited_for_by_name(pod, says):
    assert trouble(pod) == ""
    assert says in stage(pod)


def test_b14_helper_container_that_has_ended_is_named_and_not_called_unable_to_run():
    done, runs = {"terminated": {"reason": "Completed", "exitCode": 0}}, {"running": {}}
    status = {
        "phase": "Running",
        "containerStatuses": [{"name": "seed-data", "state": done}, {"name": "session", "state": runs}],
    }
    assert trouble({"metadata": {}, "status": status}) == "its container seed-data has ended: Completed"


@pytest.mark.parametrize(
    ("pod", "says"),
    [
        (
            pod_that(conditions=[{"type": "PodScheduled", "status": "False", "message": "0/3 nodes"}]),
            "not placed on a node: 0/3",
        ),
        (pod_that(state={"waiting": {"reason": "ErrImagePull"}}), "its container waits: ErrImagePull"),
        (pod_that("Running", state={"running": {}}), "it is running, but not ready"),
        ({}, "it is pending"),
    ],
)
def test_hope_is_told_from_trouble(pod, says):
    assert trouble(pod) == ""
    assert says in stage(pod)
