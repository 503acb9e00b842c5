"""Checkpoints made ready for others: exported as they are, or merged into their base, each with a card."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cuarl.errors import CheckpointError, ConfigError
from cuarl.workflow import people
from cuarl.workflow.episodes import open_store
from cuarl.workflow.targets import Target, resolve_target
from cuarl.workflow.watcher import SILENT, Note

if TYPE_CHECKING:
    from cuarl.policy.merge import MergeType
    from cuarl.policy.spec import ModelSpec
    from cuarl.settings import Settings
    from cuarl.store import EvaluationRecord
    from cuarl.train.card import About, Figure


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint with what its ``cuarl.json`` says of it."""

    folder: Path
    target: Target
    facts: Mapping[str, Any]
    settings: Settings

    @property
    def about(self) -> About:
        """Where it comes from."""
        from cuarl.train.card import About

        return About.model_validate({name: v for name, v in self.facts.items() if name in About.model_fields})


def found(text: str, settings: Settings, note: Note = SILENT.note) -> Checkpoint:
    """The checkpoint that ``text`` means. Raises ConfigError for anything that was not trained by cuarl."""
    target = resolve_target(text, settings, note)
    folder = Path(target.adapter or target.model or "")
    facts = folder / "cuarl.json"
    if target.kind != "policy" or not facts.is_file():
        raise ConfigError(
            f'"{text}" is no checkpoint of a training run',
            where="TARGET",
            hint="cuarl model export latest --out FOLDER",
        )
    return Checkpoint(folder, target, json.loads(facts.read_text(encoding="utf-8")), settings)


def export_checkpoint(
    checkpoint: Checkpoint, out: Path, *, untrained: bool = False, trusted: bool = False
) -> dict[str, Any]:
    """Write the checkpoint into ``out``, complete or not at all; one that changes nothing only if ``untrained``.

    ``trusted`` lets code that comes with the base run.

    Raises ConfigError, CheckpointError, and PrerequisiteError where the base's configuration is not here: the adapter
    could not be compared with it.
    """
    from cuarl.policy.load import check_adapter
    from cuarl.train.card import model_card
    from cuarl.train.checkpoint import write_whole

    _check_new(out)
    folder, about, adapter = checkpoint.folder, checkpoint.about, checkpoint.target.adapter is not None
    rank = None
    if not adapter and (untrained or trusted):
        raise ConfigError(
            f"--{'untrained' if untrained else 'trust-remote-code'} has no effect on a whole model", hint="leave it out"
        )
    if adapter:
        rank = _check_adapter(folder)
        _check_trained(folder, untrained=untrained)
        check_adapter(_spec(checkpoint, trusted=trusted))

    def write(unfinished: Path) -> None:
        for path in sorted(folder.iterdir()):
            if path.is_file() and path.name != "README.md":
                shutil.copy2(path, unfinished / path.name)
        card = model_card(
            about, checkpoint.target.step, adapter=adapter, metrics={}, figures=_figures(checkpoint), rank=rank
        )
        (unfinished / "README.md").write_text(card, encoding="utf-8")

    write_whole(out.absolute(), write)
    what = f"adapter of rank {rank} for {about.base_model}" if adapter else "the whole model"
    then = f"cuarl model merge {out} --out {out}-merged" if adapter else f"cuarl eval {out}"
    return {"what": f"exported: {what}, step {checkpoint.target.step}", "path": str(out), "rank": rank, "then": then}


def merge_checkpoint(
    checkpoint: Checkpoint,
    out: Path,
    dtype: MergeType,
    device: str,
    *,
    untrained: bool = False,
    trusted: bool = False,
) -> dict[str, Any]:
    """Write base and adapter as one model into ``out``, after the check; see ``export_checkpoint`` for ``untrained``.

    Raises ConfigError, CheckpointError.
    """
    from cuarl.policy.merge import Merged, merge
    from cuarl.train.card import Folded, model_card
    from cuarl.train.checkpoint import write_whole

    _check_new(out)
    about, step = checkpoint.about, checkpoint.target.step
    spec = _spec(checkpoint, device, trusted=trusted)
    if spec.adapter is not None:
        _check_trained(checkpoint.folder, untrained=untrained)
    proofs: list[Merged] = []

    def write(unfinished: Path) -> None:
        proof = merge(spec, unfinished, dtype)
        proofs.append(proof)
        folded = Folded(dtype=dtype, largest=proof.largest, tolerance=proof.tolerance)
        card = model_card(about, step, adapter=False, metrics={}, figures=_figures(checkpoint), merged=folded)
        (unfinished / "README.md").write_text(card, encoding="utf-8")
        facts = {**checkpoint.facts, "merged": {**folded.model_dump(), "tokens": proof.tokens}}
        (unfinished / "cuarl.json").write_text(json.dumps(facts, indent=2, sort_keys=True) + "\n", encoding="utf-8")

    write_whole(out.absolute(), write)
    proof = proofs[0]
    what = f"merged in {dtype}: at most {proof.largest:.1e} nats from base and adapter ({proof.tolerance:g} allowed)"
    found = {"largest": proof.largest, "tolerance": proof.tolerance, "tokens": proof.tokens}
    return {"what": what, "path": str(out), **found, "then": f"cuarl eval base --model-name {out}"}


def _spec(checkpoint: Checkpoint, device: str = "cpu", *, trusted: bool) -> ModelSpec:
    from cuarl.policy.spec import ModelSpec

    return ModelSpec(
        model=checkpoint.target.model or checkpoint.about.base_model,
        revision=checkpoint.about.base_revision,
        adapter=checkpoint.target.adapter,
        device=device,
        trust_remote_code=trusted,
    )


def _check_new(out: Path) -> None:
    if out.exists():
        raise ConfigError(f"{out} is there already", hint="name another folder with --out")


def _check_adapter(folder: Path) -> int:
    """See that other tools can take the adapter as it is; its rank. Raises CheckpointError."""
    import torch

    from cuarl.policy.adapters.files import weights_of

    settings = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    weights = weights_of(folder)
    odd = [name for name in weights if ".lora_A." not in name and ".lora_B." not in name]
    broken = [name for name, value in weights.items() if not torch.isfinite(value).all()]
    used = [name for name in ("use_dora", "modules_to_save") if settings.get(name)]
    why = None
    if not weights:
        why = "has no weights"
    elif odd:
        why = f"has weights that are not LoRA's, {odd[0]} for one"
    elif broken:
        why = f"has weights that are not numbers, {broken[0]} for one"
    elif used:
        why = f"uses {used[0]}, which servers don't know"
    if why:
        raise CheckpointError(f"the adapter {why}", where=str(folder))
    return int(settings["r"])


def _check_trained(folder: Path, *, untrained: bool) -> None:
    """Raise CheckpointError for an adapter that leaves its base as it is, unless that is wanted."""
    from cuarl.policy.adapters.files import is_untrained, weights_of

    if not untrained and is_untrained(weights_of(folder)):
        raise CheckpointError(
            "the adapter changes nothing: all of its B weights are zero, as before the first update",
            where=str(folder),
            hint="export or merge a later step (RUN@STEP), or add --untrained",
        )


def _figures(checkpoint: Checkpoint) -> list[Figure]:
    """What the store knows of this step's success, by suite and conditions; the latest evaluation of each counts.

    People's verdicts hold.
    """
    from cuarl.run import Run
    from cuarl.train.card import Figure

    settings, about = checkpoint.settings, checkpoint.about
    with open_store(settings) as store:
        run = checkpoint.target.run
        known = [Run(run).run_id] if run else [r.id for r in store.runs() if r.name == about.run]
        records = people.evaluations(store, known[-1]) if known else []
    latest = {(e.suite, e.step, _conditions(e)): e.metrics for e in records if "success_rate" in e.metrics}
    return [
        Figure(
            suite=suite,
            rate=metrics["success_rate"],
            low=metrics["ci_low"],
            high=metrics["ci_high"],
            n=int(metrics["n"]),
            before=latest.get((suite, 0, conditions), {}).get("success_rate"),
        )
        for (suite, step, conditions), metrics in sorted(latest.items())
        if step == checkpoint.target.step
    ]


def _conditions(record: EvaluationRecord) -> str:
    """What an evaluation was made with, as text: only equal ones can be put side by side."""
    return json.dumps({name: value for name, value in record.info.items() if name != "agent"}, sort_keys=True)
