"""The examples for Slurm and Kubernetes: what they run on each machine is a command that cuarl takes."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.integration.rollout_place import Place, bare

pytestmark = pytest.mark.integration
FOLDER = Path(__file__).parents[2] / "examples" / "several-machines"
PROGRAMS = {
    "scontrol": 'printf "alpha\\nbeta\\n"',  # show hostnames
    "srun": 'for SLURM_NODEID in 0 1; do export SLURM_NODEID; "$@"; done',
    "cuarl": 'for word in "$@"; do printf "%q " "$word"; done >>"$COMMANDS"; echo >>"$COMMANDS"',
}


@pytest.fixture
def ran(tmp_path, monkeypatch):
    """Runs a script in a place with the system's programs; the words of each ``cuarl`` in it."""
    programs, told = tmp_path / "programs", tmp_path / "commands"
    programs.mkdir()
    for name, body in PROGRAMS.items():
        (programs / name).write_text(f"#!/bin/bash\n{body}\n")
        (programs / name).chmod(0o755)

    def script(*command, **environment):
        told.unlink(missing_ok=True)
        kept = {"PATH": f"{programs}:/usr/bin:/bin", "COMMANDS": str(told), **environment}
        subprocess.run(["bash", *command], env=kept, cwd=tmp_path, check=True, timeout=30)
        return [shlex.split(line) for line in told.read_text().splitlines()]

    bare(monkeypatch, tmp_path)
    return script


def test_slurm_starts_each_machine_and_resumes_when_it_is_queued_again(ran, tmp_path, capsys):
    place, script = Place(tmp_path, capsys), str(FOLDER / "slurm.sh")
    assert not shutil.which("shellcheck") or subprocess.run(["shellcheck", script], check=False).returncode == 0
    slurm = {"SLURM_JOB_NODELIST": "alpha,beta", "SLURM_NNODES": "2"}
    (tmp_path / "experiment.yaml").write_text("tasks: [tasks.json]\neval_tasks: [tasks.json]\n")
    first, second = ran(script, EXPERIMENT="experiment.yaml", **slurm)
    for rank, words in enumerate((first, second)):
        assert words[0] == "train" and words[-2:] == ["--node-rank", str(rank)]
        assert words[words.index("--rendezvous") + 1] == "alpha:29500"
        planned = place.cuarl(*words, "--dry-run")
        assert planned.code == 0 and "2 for training" in planned.err, planned.err
    (tmp_path / "runs" / "big").mkdir(parents=True)
    (tmp_path / "runs" / "big" / "manifest.json").write_text("{}")
    again, _ = ran(script, **slurm)
    assert again[:3] == ["train", "--resume", "big"]


def test_kubernetes_gives_each_pod_its_number(ran, tmp_path, capsys):
    place = Place(tmp_path, capsys)
    parts = {part["kind"]: part for part in yaml.safe_load_all((FOLDER / "kubernetes.yaml").read_text())}
    pod = parts["Job"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    experiment = tmp_path / "experiment.yaml"
    experiment.write_text(parts["ConfigMap"]["data"]["experiment.yaml"])
    set_by = {entry["name"]: entry["value"] for entry in container["env"]}
    assert float(set_by["CUARL_GRACE_SECONDS"]) < pod["terminationGracePeriodSeconds"]
    assert parts["Job"]["spec"]["completions"] == parts["Job"]["spec"]["parallelism"] == 2
    shell, text = container["command"], container["args"][0]
    for rank in range(2):
        (words,) = ran(*shell[1:], text, **set_by, JOB_COMPLETION_INDEX=str(rank))
        host, _, _ = words[words.index("--rendezvous") + 1].partition(":")
        assert host == f"{parts['Job']['metadata']['name']}-0.{parts['Service']['metadata']['name']}"
        assert pod["subdomain"] == parts["Service"]["metadata"]["name"]
        planned = place.cuarl(*(str(experiment) if w.startswith("/experiment") else w for w in words), "--dry-run")
        assert planned.code == 0, planned.err
    claims = {v["name"]: v for v in pod["volumes"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == set(claims)
    assert os.path.commonpath([set_by["CUARL_RUNS_DIR"], "/runs"]) == "/runs"
