"""The files of examples/k8s fit each other, the manifests, and what cuarl asks a cluster for."""

from __future__ import annotations

import re
from pathlib import Path

import anyio
import pytest
import yaml

from cuarl.env.pods.client import Pods
from cuarl.env.pods.cluster import Where, find
from cuarl.env.pods.manifest import load
from cuarl.env.pods.progress import read
from cuarl.tasks.check import verdict
from cuarl.tasks.source import load as load_tasks
from tests.fakes.kubernetes import TOKEN, cluster

ROOT = Path(__file__).parents[4]
K8S = ROOT / "examples" / "k8s"
VALUES = {"session_id": "0a1b2c3d", "session_type": "linux", "image": "i", "token": "t"}


def documents(name):
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all((K8S / name).read_text())}


def test_access_grants_what_is_asked_for_and_no_more():
    pytest.importorskip("uvicorn", reason="the local server needs the extra web")
    rules = documents("access.yaml")["Role", "cuarl-sessions"]["rules"]
    granted = {(verb, resource) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}

    async def asked(url):
        pods = Pods(find(Where(url, TOKEN)))
        lacking = await pods.lacking(proxied=True)
        await pods.close()
        return {tuple(line.split()) for line in lacking}

    with cluster() as server:

        class Nothing:
            def __contains__(self, item):
                return True

        server.fake.forbidden = Nothing()
        needed = anyio.run(asked, server.url)
    assert granted - needed == {("list", "pods")}, "for kubectl and people"
    assert needed <= granted


@pytest.mark.parametrize("path", [None, K8S / "data-entry-pod.yaml"], ids=["shipped", "data-entry"])
def test_proxy_and_network_policy_find_the_pods(path):
    pod = load(path).pod(VALUES, "l", 60)
    proxy = documents("proxy.yaml")
    service = proxy["Service", "sessions"]["spec"]
    labels = pod["metadata"]["labels"].items()
    assert service["clusterIP"] == "None" and service["selector"].items() <= labels
    assert (
        documents("network.yaml")["NetworkPolicy", "cuarl-sessions"]["spec"]["podSelector"]["matchLabels"].items()
        <= labels
    )
    # the name by which DNS knows the pod is the one that the proxy asks for
    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("session-0a1b2c3d", "sessions")
    template = proxy["ConfigMap", "cuarl-proxy"]["data"]["default.conf.template"]
    assert "set $pod session-$session.sessions.${NAMESPACE}.svc.cluster.local;" in template
    assert f":{load(path).port}$rest" in template
    container = proxy["Deployment", "cuarl-proxy"]["spec"]["template"]["spec"]["containers"][0]
    filled = {one["name"] for one in container["env"]} | {"NGINX_LOCAL_RESOLVERS"}
    assert set(re.findall(r"\$\{(\w+)\}", template)) <= filled


def test_tasks_of_the_data_entry_are_judged_by_either_form_of_progress():
    five, first = (task.instantiate(0) for task in load_tasks([str(K8S / "data-entry.yaml")]).tasks)
    before = {"progress": read({"num_correct_submissions": 0, "num_incorrect_submissions": 0}).state()}

    def done(task, **body):
        return verdict(task, before, {"progress": read(body).state()}, volatile=("progress",)).success

    assert done(five, num_correct_submissions=5, num_incorrect_submissions=2)
    assert done(five, submitted_row_indices=[9, 4, 2, 3, 1], num_incorrect_submissions=0)
    assert not done(five, num_correct_submissions=4, num_incorrect_submissions=0)
    assert done(first, submitted_row_indices=[1, 0], num_incorrect_submissions=0)
    assert not done(first, submitted_row_indices=[1, 0], num_incorrect_submissions=1)
    assert not done(first, submitted_row_indices=[1, 0, 2], num_incorrect_submissions=0)


def test_image_installs_pinned_packages_and_starts_what_exists():
    dockerfile = (K8S / "Dockerfile").read_text()
    pinned = {
        line.split("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line
    }
    wanted = [line for line in (K8S / "requirements.txt").read_text().splitlines() if line and not line.startswith("#")]
    assert wanted == sorted(wanted, key=str.lower) and {name.lower() for name in wanted} <= pinned
    for source in re.findall(r"^COPY (.*) /tmp/$", dockerfile, re.MULTILINE)[0].split():
        assert (ROOT / source).is_file()
        assert f"!{source}" in (K8S / "Dockerfile.dockerignore").read_text()
    assert 'ENTRYPOINT ["cuarl"]' in dockerfile and load().body["spec"]["containers"][0]["args"][:2] == [
        "sessions",
        "serve",
    ]
