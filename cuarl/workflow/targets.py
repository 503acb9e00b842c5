"""What a person means by what is to be evaluated: a run, a checkpoint, the base, a baseline, an endpoint."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cuarl.config.keys import value_of
from cuarl.config.load import RECORDED, Resolved, in_url, recorded, validated
from cuarl.config.schema import ExperimentConfig
from cuarl.config.unions import UNIONS
from cuarl.errors import CheckpointError, ConfigError
from cuarl.run.checkpoints import LATEST, POINTER, newest, saved_steps, step_name
from cuarl.safe_text import has_credentials, masked
from cuarl.workflow.best import best_step
from cuarl.workflow.people import overruled
from cuarl.workflow.players import SCRIPTED
from cuarl.workflow.watcher import SILENT, Note

if TYPE_CHECKING:
    from cuarl.settings import Settings

SCHEME = "tinker://"
"""Of the paths of weights that Tinker keeps."""
TINKER_BASE = "tinker"
"""The untrained model, as Tinker has it."""
BEST = "best"
ALIASES = {"do-nothing": "nothing", "noop": "nothing"}


@dataclass(frozen=True, slots=True)
class Target:
    """A resolved target."""

    kind: Literal["scripted", "policy", "endpoint", "tinker"]
    name: str
    """Agent, base model, checkpoint folder, URL, or path of weights that Tinker keeps, for people."""
    model: str | None = None
    """Base model, where it is not the configured one."""
    adapter: str | None = None
    """Folder of the adapter on it."""
    step: int = 0
    """Training steps behind it."""
    run: Path | None = None
    """The run it belongs to."""


def resolve_target(text: str, settings: Settings, note: Note = SILENT.note) -> Target:
    """Find out what ``text`` means.

    An agent's name (oracle, random, nothing), ``base``, a URL, ``tinker`` or the ``tinker://`` path of weights, the
    folder of a checkpoint, or a run: its name, path, unique beginning or ``latest``, with ``@STEP`` for another
    checkpoint than the last, ``@best`` for the one that did best in the run's validation, or else its evaluations, or
    ``@best:METRIC``. Raises ConfigError.
    """
    name = ALIASES.get(text, text)
    if name in SCRIPTED:
        return Target("scripted", name)
    if text == "base":
        return Target("policy", "base")
    if text.startswith(("http://", "https://")):
        if has_credentials(text):
            raise in_url("the target", where=masked(text))
        return Target("endpoint", text)
    if text == TINKER_BASE or text.startswith(SCHEME):
        return Target("tinker", text)
    folder = Path(text).expanduser()
    if (folder / POINTER).is_file():
        return _kept_by_tinker(folder)
    if (folder / "adapter_config.json").is_file() or ((folder / "config.json").is_file() and not _is_run(folder)):
        return checkpoint(folder, note)
    return _of_run(text, settings, note)


def checkpoint(folder: Path, note: Note = SILENT.note) -> Target:
    """The checkpoint in ``folder``: an adapter with the base that it names, or a whole model.

    Raises CheckpointError where there is none, or only the name of weights that Tinker keeps.
    """
    if folder.name == LATEST and not folder.exists():
        folder = _newest(folder.parent, note) or folder
    if (folder / POINTER).is_file():
        raise CheckpointError(
            "Tinker keeps the weights of this checkpoint; they can be served from there",
            where=str(folder),
            hint=f"cuarl serve {folder}",
        )
    facts = folder / "cuarl.json"
    known = json.loads(facts.read_text(encoding="utf-8")) if facts.is_file() else {}
    step = int(known.get("step", 0))
    run = _run_of(folder)
    if (folder / "adapter_config.json").is_file():
        return Target("policy", str(folder), known.get("base_model"), str(folder), step, run)
    if (folder / "config.json").is_file():
        return Target("policy", str(folder), str(folder), None, step, run)
    raise CheckpointError("there is no checkpoint here", where=str(folder), hint="cuarl train")


def with_run_config(resolved: Resolved, run: Path | None) -> ExperimentConfig:
    """The configuration of ``run`` with what was asked for on top, so that it is evaluated as it was trained.

    Who names tasks means those to evaluate on. Raises ConfigError for what does not go with how the run was trained.
    """
    if run is None:
        return resolved.config
    values = recorded(run / RECORDED).model_dump()
    asked = {path: source for path, source in resolved.sources.items() if source != "default"}
    for path in asked:
        name, _, inner = path.partition(".")
        value = value_of(resolved.config, path)
        name = "eval_tasks" if name == "tasks" else name
        if inner:
            values[name][inner] = value
        elif name not in UNIONS:
            values[name] = value
        elif values[name]["type"] != value:  # what another type asks for stands behind it
            values[name] = {"type": value}
    return validated(values, {**dict.fromkeys(values, str(run / RECORDED)), **asked})


def _of_run(text: str, settings: Settings, note: Note) -> Target:
    from cuarl.run import find_run

    reference, at, wanted = text.partition("@")
    by_value = wanted == BEST or wanted.startswith(f"{BEST}:")
    if at and not wanted.isdecimal() and not by_value:
        raise ConfigError(f'"{wanted}" is no step', where=text, hint=f"cuarl eval {reference}@8, or {reference}@{BEST}")
    try:
        run = find_run(settings.runs_dir, reference)
    except ConfigError as error:
        also = f"{', '.join(SCRIPTED)}, a run, a checkpoint's folder or a URL"
        raise ConfigError(error.what, where=error.where, hint=f"cuarl eval base   # or {also}") from None
    if by_value:
        wanted = _best(run, wanted.partition(":")[2], settings, note)
    if wanted and int(wanted) == 0:
        return Target("policy", "base", run=run)
    root = run / "checkpoints"
    folder = root / step_name(int(wanted)) if wanted else _newest(root, note)
    if folder is None or not folder.is_dir():
        steps = saved_steps(root)
        what = f"the run has no checkpoint of step {wanted}" if wanted else "the run has no checkpoint yet"
        have = ", ".join(map(step_name, steps)) or "none"
        newest_one = f"cuarl eval {run.name}@{steps[-1]}" if steps else "cuarl eval base"
        raise ConfigError(f"{what} (it has {have})", where=str(run), hint=newest_one)
    return _kept_by_tinker(folder) if (folder / POINTER).is_file() else checkpoint(folder, note)


def _best(run: Path, metric: str, settings: Settings, note: Note) -> str:
    found = best_step(run, metric) if metric else best_step(run, said=overruled(settings, note))
    said = (
        ""
        if metric or found.fair
        else "; on the tasks that it was chosen by it looks better than it is, so evaluate it on others or with "
        "another --seed, or train with --validation-split 0.2"
    )
    note(f"{found.why}{said}")
    return str(found.step)


def _newest(root: Path, note: Note) -> Path | None:
    found = newest(root, state=False)
    if found is not None and found.note:
        note(found.note)
    return root / step_name(found.step) if found else None


def _kept_by_tinker(folder: Path) -> Target:
    there = json.loads((folder / POINTER).read_text(encoding="utf-8"))
    return Target("tinker", str(there["sampler"]), step=int(there["step"]), run=_run_of(folder))


def _run_of(folder: Path) -> Path | None:
    """The run whose checkpoint ``folder`` is."""
    return folder.parent.parent if folder.parent.name == "checkpoints" and _is_run(folder.parent.parent) else None


def _is_run(folder: Path) -> bool:
    return (folder / "manifest.json").is_file()
