"""All known suites under every name by which their tasks can be picked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from cuarl.errors import TaskError
from cuarl.suggest import did_you_mean
from cuarl.tasks.files import Located
from cuarl.tasks.suites import LoadedSuite, Role, load_suites
from cuarl.tasks.task import CATEGORIES, DEVICES, DIFFICULTIES

ALL = "all"
APART = ("desktop",)
"""Devices whose tasks mix with others only if asked for: their screens and actions are different ones."""


class Library:
    """The suites. ``role`` limits what categories, difficulties, devices, globs and ``all`` pick; None means no limit.

    With a role, categories, difficulties, globs and ``all`` also leave out the devices that stand ``APART``, except
    ``envs``. A suite, alias or id that is written out is picked whatever its role and device, as that is meant.
    """

    def __init__(self, suites: Sequence[LoadedSuite], role: Role | None = None, envs: Sequence[str] = ()) -> None:
        self.suites, self.role = tuple(suites), role
        self._apart = {env for env in APART if role and env not in (e.strip().casefold() for e in envs)}
        self._by_id = {one.task.id: one for suite in suites for one in suite.located}

    @classmethod
    def open(cls, folders: Sequence[Path] | None = None, role: Role | None = None, envs: Sequence[str] = ()) -> Library:
        """Load the suites in some folders (None: the shipped ones). Raises TaskError."""
        return cls(load_suites(folders), role, envs)

    def role_of(self, located: Located) -> Role | None:
        """Role of the suite that a task belongs to; None for tasks of plain files."""
        known = self._by_id.get(located.task.id)
        if known is None or known.file != located.file:
            return None
        return next((s.suite.role for s in self.suites if s.name == located.task.suite), None)

    def pick(self, name: str) -> list[Located] | None:
        """Tasks that a name stands for.

        ``all``, category, difficulty, device, suite, alias, ``suite/glob``, id or id glob.

        None if it stands for nothing known. Raises TaskError for a glob that matches no task.
        """
        folded = name.casefold()
        if folded == ALL:
            return self._of_role()
        if folded in DEVICES:
            return [one for one in _tasks(self._suites_of_role()) if one.task.env == folded]
        if folded in CATEGORIES or folded in DIFFICULTIES:
            return [one for one in self._of_role() if folded in (one.task.category, one.task.difficulty)]
        named = self._suites_named(folded)
        if named:
            return _tasks(named)
        suite, slash, glob = name.partition("/")
        if slash and self._suites_named(suite.casefold()):
            return self._matching(glob, _tasks(self._suites_named(suite.casefold())), name)
        if name in self._by_id:
            return [self._by_id[name]]
        if any(c in name for c in "*?[") and "/" not in name:
            return self._matching(name, self._of_role(), name)
        return None

    def by_id(self, ids: Sequence[str]) -> list[Located]:
        """Tasks of these ids, whatever their suite's role. Raises TaskError naming all that don't exist."""
        unknown = [task_id for task_id in ids if task_id not in self._by_id]
        if unknown:
            raise self.unknown(unknown)
        return [self._by_id[task_id] for task_id in ids]

    def suite_names(self, names: Sequence[str]) -> tuple[str, ...]:
        """Names of the suites that suite names and aliases stand for. Raises TaskError for an unknown one."""
        found: list[str] = []
        for name in names:
            suites = self._suites_named(name.casefold())
            if not suites:
                near = did_you_mean(name, self._names())
                raise TaskError(f'unknown suite "{name}"{near}', hint="cuarl tasks list")
            found += [suite.name for suite in suites]
        return tuple(found)

    def unknown(self, names: Sequence[str]) -> TaskError:
        """The error for names that stand for nothing."""
        known = [ALL, *CATEGORIES, *DIFFICULTIES, *DEVICES, *self._names(), *self._by_id]
        first, *more = (f'"{name}"{did_you_mean(name, known)}' for name in names)
        what = f"no category, suite, task id or file is called {first}" + "".join(f", {other}" for other in more)
        return TaskError(what, where="--tasks", hint="cuarl tasks list")

    def _names(self) -> list[str]:
        return [name for s in self.suites for name in (s.name, *s.suite.aliases)]

    def _suites_named(self, folded: str) -> list[LoadedSuite]:
        return [s for s in self.suites if folded in (s.name.casefold(), *(a.casefold() for a in s.suite.aliases))]

    def _suites_of_role(self) -> list[LoadedSuite]:
        return [s for s in self.suites if self.role in (None, s.suite.role)]

    def _of_role(self) -> list[Located]:
        return [one for one in _tasks(self._suites_of_role()) if one.task.env not in self._apart]

    def _matching(self, glob: str, among: Iterable[Located], name: str) -> list[Located]:
        found = [one for one in among if fnmatchcase(one.task.id, glob)]
        if found:
            return found
        elsewhere = sorted({one.task.suite for one in self._by_id.values() if fnmatchcase(one.task.id, glob)})
        if elsewhere and self.role:
            raise TaskError(
                f'no task of a {self.role} suite matches "{name}", but some of other suites do',
                where="--tasks",
                hint=f"--tasks '{elsewhere[0]}/{glob}'",
            )
        raise TaskError(f'no task id matches "{name}"', where="--tasks", hint="cuarl tasks list --ids")


def _tasks(suites: Iterable[LoadedSuite]) -> list[Located]:
    return [one for suite in suites for one in suite.located]
