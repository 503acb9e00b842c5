"""What ``cuarl doctor`` checks: one function per line of its report, each harmless and bounded in time."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib import metadata, util
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from cuarl.errors import CuarlError
from cuarl.run import facts
from cuarl.safe_text import masked

if TYPE_CHECKING:
    from cuarl.settings import Settings

GIB = 2**30
LITTLE_DISK_GIB = 5
TOO_LITTLE_DISK_GIB = 0.5
LITTLE_MEMORY_GIB = 4
CLUSTER_S = 8.0
"""How long the API server of a cluster may take to answer."""
EXTRAS = {
    "postgres": "psycopg", "browser": "playwright", "desktop": "mss", "android": "adbutils",
    "tinker": "tinker", "web": "uvicorn", "data": "datasets", "track": "wandb",
    "gymnasium": "gymnasium", "browsergym": "browsergym", "openenv": "websockets",
    "ray": "ray",
}  # fmt: skip
"""The module by which an optional dependency is recognised."""

# torch takes seconds to import, and may crash where its drivers don't fit: it is asked in a process of its own
_ASK_TORCH = """
import json, torch
cuda = torch.cuda.is_available()
devices = range(torch.cuda.device_count()) if cuda else []
print(json.dumps({
    "version": torch.__version__, "threads": torch.get_num_threads(), "built_for": torch.version.cuda,
    "devices": [torch.cuda.get_device_name(i) for i in devices],
    "free_gib": [round(torch.cuda.mem_get_info(i)[0] / 2**30, 1) for i in devices],
    "bf16": bool(cuda and torch.cuda.is_bf16_supported()),
}))
"""


class Check(NamedTuple):
    """One line of the report."""

    name: str
    status: Literal["ok", "warn", "fail"]
    detail: str
    fix: str = ""
    """A command, or what to do; empty where nothing is to be done."""


def run_checks(settings: Settings) -> list[Check]:
    """All checks. One that can't be made is a failed one, with its reason."""
    checks: list[Callable[[Settings], Check]] = [
        python, packages, torch, machine, gpu, runs_folder, disk, database, model, tasks, endpoint, cluster, secrets,
        extras,
        stand_ins, desktop,
    ]  # fmt: skip
    return [_guarded(check, settings) for check in checks]


def _guarded(check: Callable[[Settings], Check], settings: Settings) -> Check:
    try:
        return check(settings)
    except CuarlError as error:
        return Check(check.__name__.replace("_", " "), "fail", masked(error.what), error.hint or "")


def python(settings: Settings) -> Check:
    """The interpreter."""
    return Check("python", "ok", f"{'.'.join(map(str, sys.version_info[:3]))} at {sys.executable}")


def packages(settings: Settings) -> Check:
    """Whether what cuarl needs is there in versions that it knows."""
    from packaging.requirements import Requirement

    wanted = [Requirement(text) for text in metadata.requires("cuarl") or []]
    needed = [one for one in wanted if one.marker is None or one.marker.evaluate({"extra": ""})]
    wrong = []
    for one in needed:
        version = facts.package_version(one.name)
        if version is None:
            wrong.append(f"{one.name} is missing")
        elif not one.specifier.contains(version, prereleases=True):
            wrong.append(f"{one.name} {version} is not {one.specifier}")
    if wrong:
        return Check("packages", "fail", "; ".join(wrong), "pip install --upgrade cuarl")
    return Check("packages", "ok", f"all {len(needed)} in known versions")


def torch(settings: Settings) -> Check:
    """Whether torch loads, and what it can use."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _ASK_TORCH], capture_output=True, text=True, timeout=120, check=True
        )
        found = json.loads(done.stdout)
    except subprocess.CalledProcessError as error:
        last = (error.stderr or "it crashed").strip().splitlines()[-1]
        return Check("torch", "fail", f"can't be loaded: {last}", "pip install --force-reinstall torch")
    except (subprocess.TimeoutExpired, ValueError) as error:
        return Check("torch", "fail", f"does not answer: {type(error).__name__}", "pip install --force-reinstall torch")
    if found["devices"]:
        free = ", ".join(f"{n} ({gib} GiB free)" for n, gib in zip(found["devices"], found["free_gib"], strict=True))
        number = "bfloat16" if found["bf16"] else "no bfloat16"
        return Check("torch", "ok", f"{found['version']}, {found['threads']} threads, {number}, {free}")
    if facts.gpus():
        why = f"built for CUDA {found['built_for']}" if found["built_for"] else "built for the CPU alone"
        return Check("torch", "warn", f"{found['version']} can't use the GPU: {why}", "pip install torch with CUDA")
    return Check("torch", "ok", f"{found['version']}, {found['threads']} threads, CPU only")


def machine(settings: Settings) -> Check:
    """Cores and memory."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB
    detail = f"{cores} cores, {memory:.1f} GiB of memory"
    if memory < LITTLE_MEMORY_GIB:
        return Check("machine", "warn", detail, "cuarl train --max-concurrent-rollouts 16 --micro-batch-tokens 4096")
    return Check("machine", "ok", detail)


def gpu(settings: Settings) -> Check:
    """What the driver says; no GPU is no fault."""
    found = facts.gpus()
    return Check("gpu", "ok", "; ".join(found) if found else "none; the shipped model trains on a CPU")


def runs_folder(settings: Settings) -> Check:
    """Whether runs can be written."""
    folder = _existing(settings.runs_dir)
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        detail = f"{folder} can't be written: {error.strerror}"
        return Check("runs folder", "fail", detail, "export CUARL_RUNS_DIR=~/cuarl-runs")
    new = "" if settings.runs_dir.is_dir() else " (will be made)"
    return Check("runs folder", "ok", f"{settings.runs_dir.absolute()}{new}")


def disk(settings: Settings) -> Check:
    """Room for runs."""
    folder = _existing(settings.runs_dir)
    free = shutil.disk_usage(folder).free / GIB
    detail = f"{free:.1f} GiB free at {folder.absolute()}"
    status: Literal["ok", "warn", "fail"] = (
        "ok" if free >= LITTLE_DISK_GIB else "warn" if free >= TOO_LITTLE_DISK_GIB else "fail"
    )
    return Check("disk", status, detail, "" if status == "ok" else "export CUARL_RUNS_DIR=/a/larger/disk")


def database(settings: Settings) -> Check:
    """Whether the store can be reached and has the schema that this version needs."""
    from cuarl.store.schema import SchemaState
    from cuarl.store.status import status

    url = settings.db_url
    if url.startswith("sqlite:///") and not Path(url.removeprefix("sqlite:///")).exists():
        return Check("database", "ok", f"{url} (will be made)")
    found = status(url, settings.blobs_url, settings.runs_dir)
    where = f"{found.url}, revision {found.revision or 'none'}"
    if found.schema is SchemaState.NEWER:
        return Check("database", "fail", f"{where} is newer than this cuarl", "pip install --upgrade cuarl")
    if found.pending:
        return Check("database", "fail", f"{where}, needs {found.newest}", "cuarl db migrate")
    if found.wal is False:
        return Check("database", "warn", f"{where}: no write-ahead log here", "put the database on a local disk")
    return Check("database", "ok", where)


def model(settings: Settings) -> Check:
    """The shipped base."""
    from cuarl.policy import tiny

    weights = tiny.path() / "model.safetensors"
    if not weights.is_file():
        return Check("shipped model", "fail", f"{weights} is not there", "cuarl model build")
    return Check("shipped model", "ok", f"tiny, {weights.stat().st_size / 2**20:.1f} MiB")


def tasks(settings: Settings) -> Check:
    """The suites, and whether those in the user's own folder were ever proven."""
    from cuarl.tasks.suites import load_suites, shipped_folder
    from cuarl.workflow.proof_record import unproven

    suites = load_suites()
    if not suites:
        return Check("tasks", "fail", "no suites are installed", "pip install --force-reinstall cuarl")
    if settings.tasks_dir:
        suites = load_suites([shipped_folder(), settings.tasks_dir])
    count = f"{sum(len(suite.tasks) for suite in suites)} in {len(suites)} suites"
    if open_ := unproven(settings, [task for suite in suites for task in suite.tasks]):
        names = " ".join(sorted({task.suite for task in open_}))
        return Check("tasks", "warn", f"{count}; {len(open_)} never proven", f"cuarl tasks validate {names} --prove")
    return Check("tasks", "ok", count)


def endpoint(settings: Settings) -> Check:
    """The model server, if one is set."""
    import httpx

    if not settings.model_base_url:
        return Check("endpoint", "ok", "none set; policies run in this process")
    key = settings.openai_api_key
    headers = {"Authorization": f"Bearer {key.get_secret_value()}"} if key else {}
    url = f"{settings.model_base_url.rstrip('/')}/models"
    try:
        answer = httpx.get(url, headers=headers, timeout=5)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return Check("endpoint", "fail", f"{masked(url)}: {type(error).__name__}", "start it, or unset OPENAI_BASE_URL")
    if answer.status_code != httpx.codes.OK:
        return Check("endpoint", "fail", f"{masked(url)} answers {answer.status_code}", "export OPENAI_API_KEY=…")
    return Check("endpoint", "ok", masked(url))


def cluster(settings: Settings) -> Check:
    """The Kubernetes cluster, if one is set, and what may be done there."""
    import anyio

    from cuarl.env.pods.backend import pods
    from cuarl.env.pods.cluster import NoCluster
    from cuarl.workflow import signals

    async def ask() -> tuple[str, list[str]]:
        try:
            with anyio.fail_after(CLUSTER_S):
                return await found.version(), await found.lacking(proxied=settings.pods_proxy_url is None)
        finally:
            await found.close()

    try:
        found = pods(settings, None)
        where = f"{masked(found.cluster.server)}, namespace {found.namespace}, by {found.cluster.source}"
        version, lacking = signals.run(ask)
    except NoCluster:
        return Check("cluster", "ok", "none set; only --env pods needs one")
    except TimeoutError:
        return Check("cluster", "warn", f"{where}: no answer within {CLUSTER_S:g} s", "kubectl cluster-info")
    except CuarlError as error:
        return Check("cluster", "warn", masked(error.what), error.hint or "kubectl cluster-info")
    if lacking:
        detail = f"{where}: this account may not {', '.join(lacking)}"
        return Check("cluster", "warn", detail, "kubectl apply -f examples/k8s/access.yaml")
    return Check("cluster", "ok", f"{where}, {version}")


def secrets(settings: Settings) -> Check:
    """Which credentials are set; never their values."""
    names = [
        name for name in type(settings).model_fields if name.endswith(("_key", "_token")) and getattr(settings, name)
    ]
    return Check("credentials", "ok", ", ".join(name.upper() for name in names) or "none set; the default needs none")


def extras(settings: Settings) -> Check:
    """Which optional dependencies are installed."""
    there = [name for name, module in EXTRAS.items() if util.find_spec(module)]
    return Check("extras", "ok", f"installed: {', '.join(there) or 'none'}")


def stand_ins(settings: Settings) -> Check:
    """Which services can be stood in for here."""
    if not util.find_spec("uvicorn"):
        return Check("stand-ins", "ok", "adb", 'pip install "cuarl[web]"   # for gbox, gym, kubernetes')
    more = ", tinker" if util.find_spec("tinker") else ""
    return Check("stand-ins", "ok", f"adb, gbox, gym, mini-agent, kubernetes{more}: cuarl local NAME")


def desktop(settings: Settings) -> Check:
    """What a real Linux desktop lacks here; lacking it is no fault."""
    from cuarl.env.linux.programs import APPS, MODULES, install, missing

    if not sys.platform.startswith("linux"):
        return Check("linux desktop", "ok", "needs Linux; the simulated desktop needs nothing")
    lacking = missing(APPS)
    absent = [name for name in MODULES if util.find_spec(name) is None]
    if not lacking and not absent:
        return Check("linux desktop", "ok", "everything is there for --env linux")
    fixes = (["pip install 'cuarl[desktop]'"] if absent else []) + ([install(lacking)] if lacking else [])
    return Check("linux desktop", "ok", f"--env linux lacks {', '.join([*lacking, *absent])}", " && ".join(fixes))


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    absolute = folder.absolute()
    return next(path for path in (absolute, *absolute.parents) if path.is_dir())
