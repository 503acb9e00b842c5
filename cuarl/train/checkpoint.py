"""Checkpoints: a plain adapter folder that any tool can load, and beside it what training needs to go on.

::

    checkpoints/
      step-000100/            adapter_model.safetensors, adapter_config.json, README.md, tokenizer and image processor,
                              cuarl.json; a whole model instead of an adapter after full fine-tuning
      trainer/step-000100/    state.pt: moments of the optimiser and what else the learner remembers; pending.json: the
                              step's metrics, if its evaluation was cut short
      latest.json, latest     the newest checkpoint whose step is over: where a resumed run starts (``run.checkpoints``)

A checkpoint is written in two phases. ``save`` writes both folders under temporary names, makes them durable and
renames them. ``commit`` moves the mark, after the step's evaluation and metrics are out, so that a run killed in
between does them again instead of missing them.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

import cuarl
from cuarl.errors import CheckpointError
from cuarl.policy.adapters.files import exchange
from cuarl.policy.load import check_arrived
from cuarl.run.atomic import write_text
from cuarl.run.checkpoints import keep_pending, mark, marked_step, read_pending, saved_steps, step_name
from cuarl.train.card import About, model_card
from cuarl.train.learner import Learner
from cuarl.train.sending import newest_at_hand

logger = logging.getLogger(__name__)

_UNFINISHED = ".unfinished-"
IO_ERRORS = (OSError, RuntimeError, SafetensorError, pickle.UnpicklingError)
"""What Python, torch and safetensors raise for a disk that is full or a file that is damaged."""


class Checkpoints:
    """The checkpoints of one run. Only the main process writes; all processes may call."""

    def __init__(self, root: Path, learner: Learner, about: About, *, save_total_limit: int | None = None) -> None:
        self.root = root
        self._learner = learner
        self._about = about
        self._limit = save_total_limit
        self._restored = 0
        self.pending: dict[str, float] | None = None
        """Metrics of the step that was restored, if they are still to be reported."""

    def folder(self, step: int) -> Path:
        """Where the checkpoint of ``step`` lies."""
        return self.root / step_name(step)

    def save(self, step: int) -> Path:
        """Write the checkpoint of ``step``, complete and durable, but not yet the one to resume from.

        Raises CheckpointError if it can't be written; what was there before stays as it was.
        """
        folder = self.folder(step)
        state = self._learner.state()  # every process has a part of it where there are shards
        if not self._learner.accelerator.is_main_process:
            return folder
        with self._writing(step):
            self._sweep()
            if marked_step(self.root) is None:
                mark(self.root, self._restored)  # so that what is saved now is known to be unfinished
            write_whole(
                self.root / "trainer" / step_name(step), lambda unfinished: torch.save(state, unfinished / "state.pt")
            )
            write_whole(folder, lambda unfinished: self._write_model(unfinished, step))
        return folder

    @contextmanager
    def _writing(self, step: int) -> Iterator[None]:
        try:
            yield
        except IO_ERRORS as error:
            raise CheckpointError(
                f"the checkpoint of step {step} can't be written: {_reason(error)}",
                where=str(self.folder(step)),
                hint=f"df -h {self.root}",
            ) from error

    def commit(self, step: int, metrics: Mapping[str, float], pending: Mapping[str, float] | None = None) -> None:
        """Make ``step`` the checkpoint to resume from, note its evaluation in the card, delete those beyond the limit.

        ``pending`` are metrics of the step that a resumed run still has to report, with its evaluation. Raises
        CheckpointError if that can't be written; the run then goes on from the checkpoint before it.
        """
        if not self._learner.accelerator.is_main_process:
            return
        with self._writing(step):
            self._commit(step, metrics, pending)

    def _commit(self, step: int, metrics: Mapping[str, float], pending: Mapping[str, float] | None) -> None:
        keep_pending(self.root / "trainer" / step_name(step), pending)
        adapter = self._learner.policy.has_adapter
        write_text(self.folder(step) / "README.md", model_card(self._about, step, adapter=adapter, metrics=metrics))
        mark(self.root, step)
        _sync(self.root)
        if self._limit is not None:
            # later ones are what a run left behind that went on from an earlier step
            for old in [saved for saved in saved_steps(self.root) if saved <= step][: -self._limit]:
                shutil.rmtree(self.folder(old))
                shutil.rmtree(self.root / "trainer" / step_name(old), ignore_errors=True)

    def restore(self) -> int:
        """Put the newest committed checkpoint into the learner and return its step; 0 if there is none.

        Raises CheckpointError if it is damaged or does not fit the policy, or if none is whole.
        """
        with newest_at_hand(self.root) as (found, root):
            if found is None:
                return 0
            if found.note and self._learner.accelerator.is_main_process:
                logger.warning("%s", found.note)
            self._restored = found.step
            self._restore(found.step, root)
        return found.step

    def _restore(self, step: int, root: Path) -> None:
        folder, state = root / step_name(step), root / "trainer" / step_name(step) / "state.pt"
        try:
            _load_weights(self._learner, folder)
            # what belongs on the device is put there by its owner; Adam's counts of steps belong on the host
            saved = torch.load(state, map_location="cpu", weights_only=True)
            self._learner.restore(saved, step)
        except (*IO_ERRORS, KeyError, ValueError) as error:
            raise CheckpointError(
                f"the checkpoint can't be restored: {_reason(error)}",
                where=str(folder),
                hint=f"ls -l {folder} {state.parent}",
            ) from error
        self.pending = read_pending(state.parent)

    def _write_model(self, folder: Path, step: int) -> None:
        policy = self._learner.policy
        options: dict[str, Any] = {"save_embedding_layers": False} if policy.has_adapter else {}
        if (weights := self._learner.whole_weights()) is not None:
            options["state_dict"] = weights
        policy.model.save_pretrained(str(folder), **options)
        policy.save_companions(str(folder))
        (folder / "README.md").write_text(model_card(self._about, step, adapter=policy.has_adapter, metrics={}))
        facts = self._about.model_dump() | {"step": step, "cuarl_version": cuarl.__version__}
        (folder / "cuarl.json").write_text(json.dumps(facts, indent=2, sort_keys=True) + "\n")

    def _sweep(self) -> None:
        """Delete what a killed process left unfinished."""
        for parent in (self.root, self.root / "trainer"):
            parent.mkdir(parents=True, exist_ok=True)
            for left in parent.glob(f"{_UNFINISHED}*"):
                shutil.rmtree(left)


def _load_weights(learner: Learner, folder: Path) -> None:
    policy: Any = learner.policy
    if not policy.has_adapter:
        model, found = type(policy.base).from_pretrained(str(folder), dtype=policy.dtype, output_loading_info=True)
        check_arrived(found, str(folder))
        saved = model.state_dict()
        if not learner.load_weights(saved):
            policy.base.load_state_dict(saved)
        return
    if not learner.config.sharded:
        exchange(policy.model, folder)
        return
    weights = load_file(folder / "adapter_model.safetensors", device=str(policy.device))
    learner.load_weights({re.sub(r"(\.lora_[AB])\.", r"\1.default.", name): v for name, v in weights.items()})


def write_whole(target: Path, write: Callable[[Path], None]) -> None:
    """Let ``write`` fill a folder, make it durable, and give it its name; replaces an older one."""
    unfinished = target.with_name(_UNFINISHED + target.name)
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        unfinished.mkdir(parents=True)
        write(unfinished)
        for path in (*unfinished.rglob("*"), unfinished):
            _sync(path)
        if target.exists():
            shutil.rmtree(target)
        unfinished.rename(target)
        _sync(target.parent)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _reason(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
