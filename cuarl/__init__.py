"""Train computer-use agents with reinforcement learning.

::

    import cuarl

    run = cuarl.train(cuarl.Config(tasks=("settings",), difficulty=("easy",), max_steps=3))
    print(run.metrics[-1]["reward/mean"], run.table()[0])

``train``, ``rollout`` and ``evaluate`` are packages as well: what they are called with goes to ``workflow.interface``.
Importing ``cuarl`` loads none of its parts; each is loaded when it is asked for.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuarl.config.schema import ExperimentConfig as Config
    from cuarl.env.simple import SimpleEnv
    from cuarl.settings import Settings
    from cuarl.tasks.task import Check, Task
    from cuarl.workflow.interface import aevaluate, arollout, atrain, evaluate, rollout, train
    from cuarl.workflow.loaded_run import LoadedRun, load_run

__version__ = "0.1.0"
__all__ = [
    "Check", "Config", "LoadedRun", "Settings", "SimpleEnv", "Task", "__version__", "aevaluate", "arollout", "atrain",
    "evaluate", "load_run", "rollout", "train",
]  # fmt: skip

_CALLED = ("train", "rollout", "evaluate")
"""Packages that are functions, too."""
_OFFERED = {
    "Check": "cuarl.tasks.task", "Task": "cuarl.tasks.task", "Settings": "cuarl.settings",
    "SimpleEnv": "cuarl.env.simple", "LoadedRun": "cuarl.workflow.loaded_run", "load_run": "cuarl.workflow.loaded_run",
    "Config": "cuarl.workflow.interface", "atrain": "cuarl.workflow.interface",
    "arollout": "cuarl.workflow.interface", "aevaluate": "cuarl.workflow.interface",
}  # fmt: skip
"""Where the other names lie."""


class _CalledPackage(ModuleType):
    """A package whose call is the function of its name in ``workflow.interface``."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        function = getattr(import_module("cuarl.workflow.interface"), self.__name__.rpartition(".")[2])
        return function(*args, **options)


class _Root(ModuleType):
    """This package: what Python sets as its attribute when it has imported ``cuarl.train`` can be called."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _CALLED and isinstance(value, ModuleType):
            value.__class__ = _CalledPackage
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


def __getattr__(name: str) -> Any:
    if name in _CALLED:
        return import_module(f"cuarl.{name}")
    if name in _OFFERED:
        return getattr(import_module(_OFFERED[name]), name)
    raise AttributeError(f'module "cuarl" has no attribute "{name}"')


sys.modules[__name__].__class__ = _Root
