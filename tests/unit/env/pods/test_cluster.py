"""Which cluster, and as whom: kubeconfigs, tokens, certificates, the account of a pod."""

from __future__ import annotations

import base64
import sys

import anyio
import httpx
import pytest
import stamina
import yaml

pytest.importorskip("uvicorn", reason="the local server needs the extra web")

from cuarl.env.pods.client import Pods
from cuarl.env.pods.cluster import Where, find
from cuarl.env.pods.login import FileToken, FixedToken, Login, PluginToken
from cuarl.errors import EnvError, PrerequisiteError
from cuarl.local.kubernetes import FakeKubernetes
from cuarl.local.threads import served
from tests.fakes import certificates

TOKEN = "cluster-marker-77"


def config(path, *, server="https://one:6443", user=None, cluster=None, name="one", current=True, namespace=None):
    body = {
        "apiVersion": "v1",
        "kind": "Config",
        "contexts": [{"name": name, "context": {"cluster": name, "user": name, "namespace": namespace}}],
        "clusters": [{"name": name, "cluster": {"server": server, **(cluster or {})}}],
        "users": [{"name": name, "user": user or {}}],
    }
    if current:
        body["current-context"] = name
    path.write_text(yaml.safe_dump(body))
    return str(path)


def token_of(cluster):
    """What a request is signed with."""

    async def run():
        flow = cluster.login.async_auth_flow(httpx.Request("GET", "http://x"))
        request = await anext(flow)
        await flow.aclose()
        return request.headers["authorization"]

    return anyio.run(run)


def test_current_context_of_a_kubeconfig(tmp_path):
    path = config(tmp_path / "c", user={"token": TOKEN}, namespace="agents")
    cluster = find(Where(kubeconfig=path))
    assert (cluster.server, cluster.namespace) == ("https://one:6443", "agents")
    assert token_of(cluster) == f"Bearer {TOKEN}"
    assert cluster.found == {"kubeconfig": path, "context": "one"}
    assert TOKEN not in repr(cluster.found)


def test_of_several_files_the_first_that_names_a_thing_wins(tmp_path):
    first = config(tmp_path / "a", name="one", server="https://first", current=False)
    second = config(tmp_path / "b", name="one", server="https://second")
    third = config(tmp_path / "c", name="two", server="https://third")
    paths = f"{first}:{tmp_path / 'absent'}:{second}:{third}"
    assert find(Where(kubeconfig=paths)).server == "https://first"
    assert find(Where(kubeconfig=paths, context="two")).server == "https://third"
    with pytest.raises(PrerequisiteError, match='no context "three"; there are: one, two'):
        find(Where(kubeconfig=paths, context="three"))


def test_address_and_token_win_over_files(tmp_path):
    path = config(tmp_path / "c", user={"token": "of-the-file"})
    assert find(Where(api_url="https://here/", token=TOKEN, kubeconfig=path)).server == "https://here"
    assert token_of(find(Where(token=TOKEN, kubeconfig=path))) == f"Bearer {TOKEN}"


def test_token_is_not_sent_openly():
    assert find(Where(api_url="http://localhost:8001", token=TOKEN)).server == "http://localhost:8001"
    assert find(Where(api_url="http://elsewhere:8001")).login is None, "as behind kubectl proxy"
    with pytest.raises(PrerequisiteError, match="not sent without encryption"):
        find(Where(api_url="http://elsewhere:8001", token=TOKEN))


def test_account_of_the_pod_is_read_anew(tmp_path, monkeypatch, authority):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "token").write_text("account-token-1\n")
    (tmp_path / "namespace").write_text("agents")
    (tmp_path / "ca.crt").write_bytes((authority / "ca.pem").read_bytes())
    environment = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    cluster = find(Where(), environment, tmp_path)
    assert (cluster.server, cluster.namespace) == ("https://10.0.0.1:443", "agents")
    assert token_of(cluster) == "Bearer account-token-1"
    (tmp_path / "token").write_text("account-token-2\n")
    assert token_of(cluster) == "Bearer account-token-2"


def test_without_any_cluster_that_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(PrerequisiteError, match="no Kubernetes cluster is set"):
        find(Where(), {}, tmp_path)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"cluster": {"proxy-url": "http://p"}}, "proxy-url of the cluster is not understood"),
        ({"user": {"auth-provider": {"name": "gcp"}}}, "auth-provider of the user is not understood"),
        ({"user": {"as": "root"}}, "as of the user is not understood"),
        ({"cluster": {"certificate-authority-data": "!"}}, "certificate-authority of the kubeconfig can't be read"),
        ({"cluster": {"certificate-authority": "absent.pem"}}, "certificate-authority of the kubeconfig can't be read"),
        ({"cluster": {"certificate-authority-data": base64.b64encode(b"no pem").decode()}}, "can't be used"),
    ],
)
def test_what_is_not_understood_is_refused(options, says, tmp_path):
    with pytest.raises(PrerequisiteError, match=says):
        find(Where(kubeconfig=config(tmp_path / "c", **options)))


@pytest.mark.parametrize(
    ("text", "says"),
    [("token: [secret-in-a-line\nx", "no YAML"), ("- 1", "no mapping"), ("kind: Config", "no current context")],
)
def test_broken_kubeconfig_is_named_and_not_repeated(text, says, tmp_path):
    (tmp_path / "c").write_text(text)
    with pytest.raises(PrerequisiteError, match=says) as caught:
        find(Where(kubeconfig=str(tmp_path / "c")))
    assert "secret-in-a-line" not in str(caught.value)
    with pytest.raises(PrerequisiteError, match="not there"):
        find(Where(kubeconfig=str(tmp_path / "absent")))


def plugin(folder, script):
    """A credential plug-in beside the kubeconfig, named by a relative path as kubectl allows."""
    (folder / "bin").mkdir(exist_ok=True)
    path = folder / "bin" / "plugin"
    path.write_text(f"#!{sys.executable}\nimport json, os, sys\n{script}")
    path.chmod(0o700)
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": "./bin/plugin",
            "args": ["get-token"],
            "env": [{"name": "WHO", "value": "me"}],
            "installHint": "install the plug-in",
        }
    }


COUNTING = """
asked = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
assert sys.argv[1:] == ["get-token"] and os.environ["WHO"] == "me", sys.argv
path = os.path.join(os.path.dirname(__file__), "count")
count = int(open(path).read()) + 1 if os.path.exists(path) else 1
open(path, "w").write(str(count))
token = f"plugin-token-{count}"
print(json.dumps({"apiVersion": asked["apiVersion"], "kind": "ExecCredential", "status": {"token": token}}))
"""


def test_plugin_is_asked_once_and_again_when_its_token_is_refused(tmp_path):
    fake = FakeKubernetes("plugin-token-1")

    async def run(url):
        pods = Pods(find(Where(kubeconfig=config(tmp_path / "c", server=url, user=plugin(tmp_path, COUNTING)))))
        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(pods.get, "absent")
        assert (tmp_path / "bin" / "count").read_text() == "1"
        fake.expire("plugin-token-2")
        assert await pods.get("absent") is None
        assert (tmp_path / "bin" / "count").read_text() == "2"
        fake.expire("never-again")
        with pytest.raises(EnvError, match="401"):
            await pods.get("absent")
        await pods.close()

    with served(fake.app()) as url:
        anyio.run(run, url)


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("sys.exit('not logged in')", "ended with status 1: not logged in"),
        ("print('hello')", "printed no ExecCredential"),
        ("print(json.dumps({'status': {'clientCertificateData': 'x'}}))", "printed no token"),
    ],
)
def test_plugin_that_fails_is_named_with_its_hint(script, says, tmp_path):
    cluster = find(Where(kubeconfig=config(tmp_path / "c", user=plugin(tmp_path, script))))
    with pytest.raises(EnvError, match=says) as caught:
        token_of(cluster)
    assert caught.value.hint == "install the plug-in"


def test_plugin_that_is_not_installed_is_named():
    async def run():
        with pytest.raises(EnvError, match="no-such-plugin can't be run"):
            await PluginToken(["no-such-plugin"], "v1").current()

    anyio.run(run)


def test_token_file_that_is_gone_is_named(tmp_path):
    async def run():
        with pytest.raises(EnvError, match="can't read the token"):
            await FileToken(tmp_path / "none").current()

    anyio.run(run)
    assert not FixedToken("t").renew()
    assert isinstance(Login(FixedToken("t")), httpx.Auth)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return certificates.authority(tmp_path_factory.mktemp("pki"))


def test_certificates_of_a_kubeconfig_are_trusted_and_shown(authority, tmp_path):
    def data(name):
        return base64.b64encode((authority / name).read_bytes()).decode()

    async def version(**options):
        pods = Pods(find(Where(kubeconfig=config(tmp_path / "c", **options))))
        try:
            return await pods.version()
        finally:
            await pods.close()

    shown = {"client-certificate-data": data("client.pem"), "client-key-data": data("client.key")}
    with served(FakeKubernetes(TOKEN).app(), **certificates.secured(authority, ask_clients=True)) as url:
        url = url.replace("http:", "https:")
        trusted = {"certificate-authority-data": data("ca.pem")}
        assert anyio.run(lambda: version(server=url, cluster=trusted, user=shown)) == "v1.32.0-fake"
        by_path = {"certificate-authority": str(authority / "ca.pem")}
        paths = {"client-certificate": str(authority / "client.pem"), "client-key": str(authority / "client.key")}
        assert anyio.run(lambda: version(server=url, cluster=by_path, user=paths)) == "v1.32.0-fake"
        for options in ({"user": shown}, {"cluster": trusted}):  # not trusted, or not shown
            with stamina.set_testing(True, attempts=1), pytest.raises(EnvError, match="did not answer"):
                anyio.run(lambda options=options: version(server=url, **options))
