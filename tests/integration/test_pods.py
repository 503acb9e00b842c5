"""Runs in pods of a cluster that misbehaves, pods of a killed run, the server that runs in a pod, and kubectl."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import stamina
import yaml

pytest.importorskip("uvicorn", reason="the local server needs the extra web")

from cuarl.env.leases import Ledger
from cuarl.env.linux.programs import require
from cuarl.env.pods.manifest import load
from cuarl.errors import PrerequisiteError
from cuarl.local.faults import Faults
from cuarl.local.kubernetes import FakeKubernetes
from cuarl.types import StopReason
from tests import warm
from tests.fakes import certificates
from tests.fakes.kubernetes import TOKEN, cluster
from tests.integration.rollout_place import Place, bare

pytestmark = pytest.mark.integration
FORM = {
    "id": "form", "description": "Make the desktop dark", "env": "pods", "max_steps": 12,
    "checks": [{"path": "progress.num_correct_submissions", "op": "ge", "value": 1}],
}  # fmt: skip


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    bare(monkeypatch, tmp_path)
    monkeypatch.setenv("CUARL_SESSIONS_DIR", str(tmp_path / "sessions"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return Place(tmp_path, capsys)


def use(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def test_64_episodes_with_faults_leave_nothing_and_double_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Our own servers: every request may come twice, so that faults cost time and no episode."""
    with cluster(faults=Faults(refuse=0.1, breaks=0.05, drop=0.02, start_s=0.3, seed=1)) as server:
        use(monkeypatch, server.variables)
        done = place.cuarl(
            "rollout",
            "--env",
            "pods",
            "--agent",
            "oracle",
            "--tasks",
            "train_07_go_home",
            "--episodes",
            "64",
            "--pods-settle-ms",
            "10",
            "--name",
            "many",
            "--json",
        )
        counts = server.fake.counts()
    assert done.code == 0, done.err
    assert (counts["made"], counts["live"], counts["doubled"]) == (64, 0, 0)
    assert counts["peak"] <= 64
    assert not list((place.folder / "sessions").glob("*.json"))
    assert {one.stop for one in place.episodes()} == {StopReason.DONE}


def test_faults_of_other_servers_fail_episodes_by_name(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that don't know a request that comes twice: nothing is sent again that may have arrived."""
    manifest = dict(load().body)
    manifest["spec"]["containers"][0]["args"] = ["sessions", "serve", "desktop", "--task", "desk_dark_style"]
    Path("pod.yaml").write_text(yaml.safe_dump(manifest))
    Path("form.json").write_text(json.dumps([FORM]))
    with cluster(faults=Faults(refuse=0.1, breaks=0.05, drop=0.02, start_s=0.3, seed=1), forgetful=True) as server:
        use(monkeypatch, server.variables)
        done = place.cuarl(
            "rollout",
            "--env",
            "pods",
            "--agent",
            "random",
            "--tasks",
            "form.json",
            "--episodes",
            "24",
            "--reward",
            "env",
            "--pods-manifest",
            "pod.yaml",
            "--pods-settle-ms",
            "10",
            "--max-failed-share",
            "1",
            "--max-turns",
            "4",
        )
        counts = server.fake.counts()
    assert done.code == 0, done.err
    assert (counts["live"], counts["doubled"]) == (0, 0)
    stored = place.episodes()
    failed = [one.failure.message for one in stored if one.failure]
    assert len(stored) == 24 and 0 < len(failed) < 24
    assert all("Kubernetes answered 500" in message or "Kubernetes did not answer" in message for message in failed)
    scored = [one for one in stored if not one.failure]
    assert all(
        one.reward == pytest.approx(sum(turn.reward for turn in one.turns if turn.reward is not None)) for one in scored
    )


def test_one_actor_is_one_episode_is_one_pod(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in UI-RL's pool: at most so many at once, and one that ends makes room for another."""
    with cluster() as server:
        use(monkeypatch, server.variables)
        done = place.cuarl(
            "rollout",
            "--env",
            "pods",
            "--agent",
            "oracle",
            "--tasks",
            "system",
            "--episodes",
            "9",
            "--max-concurrent-rollouts",
            "2",
            "--pods-settle-ms",
            "10",
        )
        counts = server.fake.counts()
    assert done.code == 0, done.err
    assert (counts["made"], counts["live"], counts["peak"]) == (9, 0, 2)


def test_pods_that_die_are_named_and_replaced(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    class Scarce(FakeKubernetes):
        """Runs out of memory for every third pod, once it acts."""

        async def _proxy(self, request: Any) -> Any:
            pods = list(self.made)
            pod = self._pod(request)
            if pod is not None and pods.index(pod.name) % 3 == 2 and pod.acted:
                pod.kill("OOMKilled")
            return await super()._proxy(request)

        async def _create(self, request: Any) -> Any:
            reply = await super()._create(request)
            self.made = dict.fromkeys(pod.name for pod in [*self.past, *self.pods.values()])
            return reply

    with cluster(make=Scarce) as server, stamina.set_testing(True, attempts=3):
        use(monkeypatch, server.variables)
        done = place.cuarl(
            "rollout",
            "--env",
            "pods",
            "--agent",
            "oracle",
            "--tasks",
            "system",
            "--episodes",
            "9",
            "--max-concurrent-rollouts",
            "1",
            "--max-failed-share",
            "1",
            "--pods-settle-ms",
            "10",
        )
        counts = server.fake.counts()
    assert done.code == 0, done.err
    assert (counts["made"], counts["live"], counts["peak"]) == (9, 0, 1)
    stored = place.episodes()
    failed = [one.failure for one in stored if one.failure]
    assert len(stored) == 9 and len(failed) == 3
    assert all("is lost: it has failed (OOMKilled" in failure.message for failure in failed)
    assert all(failure.boundary == "env" for failure in failed)
    assert all((one.reward is None) == (one.failure is not None) for one in stored)


def killed_within_an_episode(folder: Path, variables: dict[str, str], ended) -> None:
    environment = os.environ | variables | {"CUARL_SESSIONS_DIR": str(folder / "sessions")}
    words = "rollout --env pods --agent oracle --tasks system --episodes 3 --pods-settle-ms 30000"
    with warm.Command(*words.split(), env=environment, cwd=folder, stdout=warm.PIPE) as run:
        while not ended() and run.poll() is None:
            time.sleep(0.05)
        assert run.poll() is None, run.stdout and run.stdout.read()
        run.send_signal(signal.SIGKILL)


@pytest.mark.parametrize("when", ["acting", "starting"])
@pytest.mark.parametrize("by_file", [False, True], ids=["by-address", "by-kubeconfig"])
def test_sweep_deletes_the_pods_of_a_killed_run(
    when: str, by_file: bool, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = 0.0 if when == "acting" else 1e6
    with cluster(faults=Faults(start_s=slow)) as server:
        variables = kubeconfig(place.folder, server.url) if by_file else server.variables
        wanted = "actions" if when == "acting" else "made"
        killed_within_an_episode(place.folder, variables, lambda: server.fake.counts()[wanted] > 0)
        assert server.fake.counts()["live"] > 0
        use(monkeypatch, {"KUBE_TOKEN": TOKEN} if not by_file else {})
        use(monkeypatch, {name: value for name, value in variables.items() if not by_file})
        listed = place.cuarl("sessions", "list", "--json")
        assert {lease["state"] for lease in json.loads(listed.out)} == {"orphaned"}
        swept = place.cuarl("sessions", "sweep")
        assert swept.code == 0, swept.err + swept.out
        assert server.fake.counts()["live"] == 0
    assert not list((place.folder / "sessions").glob("*.json"))
    told = [path for path in place.folder.rglob("*") if path.is_file() and path.name != "kubeconfig"]
    assert [path for path in told if TOKEN.encode() in path.read_bytes()] == []


def kubeconfig(folder: Path, url: str, authority: Path | None = None) -> dict[str, str]:
    body = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "local",
        "users": [{"name": "u", "user": {"token": TOKEN}}],
        "contexts": [{"name": "local", "context": {"cluster": "c", "user": "u", "namespace": "agents"}}],
        "clusters": [{"name": "c", "cluster": {"server": url, "certificate-authority": str(authority or "")}}],
    }
    (folder / "kubeconfig").write_text(yaml.safe_dump(body))
    return {"KUBECONFIG": str(folder / "kubeconfig")}


def test_kubectl_sees_and_ends_the_same_pods(place: Place) -> None:
    """The local server says to kubectl what a cluster says, so that what it says to cuarl is worth something."""
    if shutil.which("kubectl") is None:
        pytest.skip("needs kubectl")
    pki = certificates.authority(place.folder)
    # kubectl sends tokens over encrypted connections alone
    with cluster(secure=certificates.secured(pki)) as server:
        variables = kubeconfig(place.folder, server.url.replace("http:", "https:"), pki / "ca.pem")

        def kubectl(*words: str, text: str | None = None) -> str:
            command = ["kubectl", "--cache-dir", str(place.folder / "cache"), *words]
            done = subprocess.run(
                command, env=os.environ | variables, input=text, capture_output=True, text=True, timeout=60
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        values = {"session_id": "0a1b2c3d", "session_type": "phone", "image": "cuarl-session", "token": "t"}
        kubectl("create", "--validate=false", "-f", "-", text=json.dumps(load().pod(values, "of-kubectl", 60)))
        page = kubectl("get", "--raw", "/api/v1/namespaces/agents/pods/session-0a1b2c3d:8000/proxy/")
        assert "type: phone" in page
        killed_within_an_episode(place.folder, variables, lambda: server.fake.counts()["actions"] > 0)
        mine = json.loads(kubectl("get", "pods", "-l", "app.kubernetes.io/managed-by=cuarl", "-o", "json"))["items"]
        assert {pod["status"]["phase"] for pod in mine} == {"Running"} and len(mine) == 4
        names = [pod["metadata"]["name"] for pod in mine]
        assert "deleted" in kubectl("delete", "--wait=false", "pod", *names)
        assert server.fake.counts()["live"] == 0


def answer(client: httpx.Client) -> httpx.Response | None:
    """To a plain request; None where nothing listens yet."""
    try:
        return client.get("/")
    except httpx.ConnectError:
        return None


def test_server_of_a_pod_starts_with_the_manifest_s_words_and_leaves_nothing(place: Place) -> None:
    pod = load().pod({"session_id": "0a1b2c3d", "session_type": "phone", "image": "i", "token": "pod-token-9"}, "l", 60)
    (container,) = pod["spec"]["containers"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    words = [port if word == "8000" else word.replace("0.0.0.0", "127.0.0.1") for word in container["args"]]
    environment = os.environ | {one["name"]: one["value"] for one in container["env"]}
    told = place.folder / "told"
    with told.open("w") as file:  # a pipe would be full of what was imported
        server = subprocess.Popen(
            [sys.executable, "-X", "importtime", "-m", "cuarl", *words], env=environment, stderr=file
        )
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"X-Session-Token": "pod-token-9"}) as client:
        deadline = time.monotonic() + 120  # -X importtime is slow on a busy machine
        while (ready := answer(client)) is None:
            assert server.poll() is None and time.monotonic() < deadline
            time.sleep(0.1)
        assert ready.text.startswith("cuarl session")
        shot = client.get("/act", params={"action_type": "screenshot"})
        assert shot.content.startswith(b"\x89PNG")
    server.send_signal(signal.SIGTERM)
    assert server.wait(30) == 0, told.read_text()[-2000:]
    said = told.read_text()
    loaded = {line.rsplit("|", 1)[-1].strip() for line in said.splitlines() if line.startswith("import time:")}
    assert not loaded & {"torch", "transformers", "sqlalchemy"}, "an image needs none of these"


def test_session_without_a_token_of_the_user_s_makes_one(place: Place) -> None:
    words = ("sessions", "serve", "phone", "--port", "0", "--json")
    with warm.Command(*words, cwd=place.folder, stdout=warm.PIPE, stderr=warm.PIPE) as server:
        try:
            assert server.stdout is not None
            told = json.loads(server.stdout.readline())
            for headers, status in (({}, 401), ({"X-Session-Token": told["token"]}, 200)):
                got = httpx.get(f"{told['url']}/act?action_type=screenshot", headers=headers, timeout=60)
                assert got.status_code == status
            page = {"X-Session-Token": told["token"], "Origin": "http://evil.com"}
            assert httpx.get(f"{told['url']}/state", headers=page).status_code == 403
        finally:
            server.send_signal(signal.SIGTERM)
            server.communicate(timeout=30)


def test_open_address_needs_a_token_and_an_unknown_device_is_named(place: Place) -> None:
    refused = place.cuarl("sessions", "serve", "phone", "--host", "0.0.0.0", "--port", "0")
    assert refused.code == 4 and "CUARL_SESSION_TOKEN" in refused.err
    assert place.cuarl("sessions", "serve", "toaster").code == 2
    wrong = place.cuarl("sessions", "serve", "phone", "--task", "desk_dark_style")
    assert wrong.code == 2 and "is for desktop" in wrong.err


def test_what_can_not_work_is_said_before_anything_starts(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    rollout = ("rollout", "--env", "pods", "--agent", "random", "--tasks", "tasks.json")
    none = place.cuarl(*rollout)
    assert none.code == 4 and "no Kubernetes cluster is set" in none.err
    use(monkeypatch, {"KUBE_API_URL": "http://127.0.0.1:9"})
    short = place.cuarl(*rollout, "--pods-expires-seconds", "60")
    assert short.code == 2 and "env.expires_seconds must exceed" in short.err
    assert place.cuarl(*rollout, "--pods-manifest", "absent.yaml").code == 2
    foreign = place.cuarl("rollout", "--env", "pods", "--agent", "random", "--tasks", "mw_click_button")
    assert foreign.code == 2
    assert place.cuarl("rollout", "--agent", "random", "--tasks", "tasks.json", "--pods-settle-ms", "5").code == 2
    assert not (place.folder / "sessions").exists()


def test_real_desktops_in_pods_are_solved_judged_and_ended(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same server that the image holds, over Xvfb, openbox and real applications."""
    try:
        require(["galculator", "mousepad"])
    except PrerequisiteError as error:
        pytest.skip(str(error))
    desktops = Ledger(place.folder / "desktops")
    with cluster(desktops=desktops) as server:
        use(monkeypatch, server.variables)
        done = place.cuarl(
            "rollout",
            "--env",
            "pods",
            "--agent",
            "oracle",
            "--tasks",
            "linux_calc_sum,linux_edit_append,linux_edit_unicode",
            "--episodes",
            "3",
            "--max-concurrent-rollouts",
            "2",
            "--pods-settle-ms",
            "50",
        )
        counts = server.fake.counts()
    assert done.code == 0, done.err
    stored = place.episodes()
    assert [one.verdict and one.verdict.success for one in stored] == [True] * 3, [one.failure for one in stored]
    assert counts["live"] == counts["doubled"] == 0 and counts["actions"] > 3
    assert desktops.leases() == []
