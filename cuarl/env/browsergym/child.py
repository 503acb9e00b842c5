"""The worker that runs an environment of BrowserGym: ``python -m cuarl.env.browsergym.child``."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import gymnasium
from playwright.sync_api import BrowserType

from cuarl.env.gymnasium.child import Child, Open
from cuarl.env.workers.frames import Refused
from cuarl.env.workers.serve import serve

SUBSETS = ("coord", "chat", "infeas", "nav", "custom")
"""Sets of calls that ``cuarl.env.browsergym.actions`` writes; the custom one is scrolling where the pointer is."""


class BrowserGymChild(Child):
    """The same requests, for tasks of BrowserGym by their name."""

    def _make(self, request: Mapping[str, Any]) -> dict[str, Any]:
        from browsergym.core.action.functions import scroll
        from browsergym.core.action.highlevel import HighLevelActionSet

        self._close()
        module, _, name = request["id"].rpartition(":")
        suite = f"browsergym.{name.partition('.')[0]}"
        try:
            # most tasks are in packages of their own
            for wanted in filter(None, (module, suite if find_spec(suite) is not None else "")):
                import_module(wanted)
        except ImportError as error:
            raise Refused(f"{request['id']} can't be made: {error}") from error
        calls = HighLevelActionSet(list(SUBSETS), custom_actions=[scroll], multiaction=True)
        use_browser(request.get("browser"))
        try:
            env = gymnasium.make(
                f"browsergym/{name}", disable_env_checker=True, action_mapping=calls.to_python_code, **request["kwargs"]
            )
        except (gymnasium.error.Error, TypeError) as error:
            raise Refused(f"{name} can't be made: {type(error).__name__}: {error}") from error
        self._open = Open(env, "screenshot")
        return {"space": {"type": "Text"}, "names": None}


def use_browser(program: str | None) -> None:
    """Have Playwright start ``program`` wherever no other is named.

    BrowserGym lets that be said for one of its two alone.
    """
    if program is None:
        return
    launch = getattr(BrowserType, "cuarl_launch", BrowserType.launch)

    def launch_program(self: BrowserType, **options: Any) -> Any:
        return launch(self, **{"executable_path": program, **options})

    BrowserType.cuarl_launch, BrowserType.launch = launch, launch_program


if __name__ == "__main__":
    if find_spec("browsergym.core") is not None:
        import_module("browsergym.core")
    serve(BrowserGymChild())
