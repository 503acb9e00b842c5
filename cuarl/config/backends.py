"""The one table of what ``env`` can name, and where each backend's options and code are.

A backend is looked up by its name when it is needed, so that configurations can be read without importing any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from types import ModuleType

from cuarl.config.fields import EnvOptions
from cuarl.suggest import did_you_mean

GROUP = "cuarl.environments"
"""Entry points of installed packages that add environments: a name and a module."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a backend is."""

    options: str
    """Module with the class ``Options``, a subclass of ``EnvOptions``; it imports little."""
    backend: str
    """Module with ``backend(options, config, tasks, settings)``, which checks the tasks and the machine and raises
    before anything starts, and ``check_options(options, tasks)`` where some tasks leave an option without effect."""


def _here(package: str) -> Place:
    return Place(f"{package}.options", f"{package}.backend")


BACKENDS: Mapping[str, Place] = {
    "sim": _here("cuarl.env.sim"),
    "linux": _here("cuarl.env.linux"),
    "browser": _here("cuarl.env.browser"),
    "adb": _here("cuarl.env.adb"),
    "gbox": _here("cuarl.env.gbox"),
    "pods": _here("cuarl.env.pods"),
    # an agent elsewhere may act in these, and the policy that this one asks is served: layers above environments
    "gym": Place("cuarl.env.gym.options", "cuarl.workflow.gym"),
    "program": Place("cuarl.env.program.options", "cuarl.workflow.program"),
    "gymnasium": _here("cuarl.env.gymnasium"),
    "browsergym": _here("cuarl.env.browsergym"),
    "openenv": _here("cuarl.env.openenv"),
    "grounding": _here("cuarl.env.grounding"),
}


def names() -> tuple[str, ...]:
    """All environments that are installed, ours first."""
    others = (one.name for one in entry_points(group=GROUP) if one.name not in BACKENDS)
    return (*BACKENDS, *sorted(others))


def options_of(name: str) -> type[EnvOptions]:
    """The record of an environment's options. Raises ValueError if there is none of that name."""
    if ":" in name:  # package.module:name, one's own in Python
        return EnvOptions
    place = _place(name)
    found: type[EnvOptions] = getattr(import_module(place.options), "Options", EnvOptions)
    return found


def module_of(name: str) -> ModuleType:
    """The module of a backend. Raises ValueError if there is none of that name."""
    return import_module(_place(name).backend)


def _place(name: str) -> Place:
    """What others call by one of our names is not theirs to take."""
    if name in BACKENDS:
        return BACKENDS[name]
    for one in entry_points(group=GROUP, name=name):
        return Place(one.value, one.value)
    raise ValueError(f'there is no environment "{name}"{did_you_mean(name, names())}')
