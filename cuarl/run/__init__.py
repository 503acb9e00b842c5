"""The run directory: one folder that says all about a run but its trajectories, which the store has.

::

    runs/<name>/
      manifest.json              who, what, where, when, how it ended; replaced atomically
      config.json                resolved; ``cuarl train -c runs/X/config.json`` runs it again
      config.source/             the files that were given, byte for byte
      tasks.json, reward/, imitated.txt  what else decides what a training run learns (``cuarl.workflow.inputs``)
      metrics.jsonl              one object per step
      events.jsonl               what happened, one object each
      logs/attempt-001/cuarl.log one folder per start; ``logs/latest`` is the newest
      checkpoints/               written by ``cuarl.train.checkpoint``
      evals/                     written by ``cuarl.evaluate``
"""

from cuarl.run.directory import Run
from cuarl.run.lookup import find_run, list_runs
from cuarl.run.manifest import Attempt, Manifest, read_manifest

__all__ = ["Attempt", "Manifest", "Run", "find_run", "list_runs", "read_manifest"]
