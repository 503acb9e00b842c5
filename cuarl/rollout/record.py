"""Gathers the record of a running episode: its turns, the pictures they name, and what else there is to note."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cuarl.agent.base import Decision
from cuarl.trajectory import Turn
from cuarl.types import ImageRef, Observation, Screenshot, StepResult

_TURN_INFO = frozenset({"rejected", "settle_ms", "settled", "changed"})


class Recorder:
    """Turns so far. ``observation`` and ``shown`` are the present screen and its reference."""

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.pictures: dict[str, Screenshot] = {}
        self.info: dict[str, Any] = {}
        self.interrupted = False
        """The last turn's step never came back, so the screen after it is not known."""
        self._screen: tuple[Observation, ImageRef] | None = None

    @property
    def observation(self) -> Observation:
        """The screenshot that the agent is shown."""
        assert self._screen is not None, "nothing was shown yet"
        return self._screen[0]

    @property
    def shown(self) -> ImageRef:
        """Reference of the present picture."""
        assert self._screen is not None, "nothing was shown yet"
        return self._screen[1]

    @property
    def final(self) -> ImageRef | None:
        """The last screen, where it is known."""
        return self._screen[1] if self._screen and not self.interrupted else None

    def show(self, observation: Observation) -> None:
        """Take in a new screen; one that looks like the present one keeps its reference."""
        picture = observation.screenshot
        if self._screen is not None and picture.digest == self._screen[1].digest:
            self._screen = (observation, self._screen[1])
            return
        ref = picture.ref
        self.pictures[ref.digest] = picture
        self._screen = (observation, ref)

    def turn(
        self, decision: Decision, result: StepResult | None, *, started_at: float, model_s: float, env_s: float
    ) -> None:
        """Note a turn; ``result`` is None if the decision did not reach the environment."""
        before, info, changed = self.shown, {} if result is None else result.info, None
        text = self.observation.text
        if result is not None:
            self.show(result.observation)
            changed = self.shown.digest != before.digest
            self._keep(info)
        self._add(
            decision,
            before,
            text,
            warnings=decision.warnings,
            started_at=started_at,
            model_s=model_s,
            env_s=env_s,
            changed=changed,
            rejected=info.get("rejected"),
            reward=None if result is None else result.reward,
            settle_ms=info.get("settle_ms"),
            settled=info.get("settled"),
        )

    def interrupted_turn(
        self, decision: Decision, why: str, *, started_at: float, model_s: float, env_s: float
    ) -> None:
        """Note a turn whose action went to the environment and never came back."""
        self.interrupted = True
        warnings = (*decision.warnings, why)
        text = self.observation.text
        self._add(decision, self.shown, text, warnings=warnings, started_at=started_at, model_s=model_s, env_s=env_s)

    def _add(self, decision: Decision, shown: ImageRef, text: Mapping[str, str], **fields: Any) -> None:
        self.pictures.update(decision.pictures)
        if decision.info:
            self.info.setdefault("decisions", {})[str(len(self.turns))] = dict(decision.info)
        self.turns.append(
            Turn(
                index=len(self.turns),
                screenshot=shown,
                text=text,
                action=decision.action,
                parse_error=decision.parse_error,
                resized=decision.resized,
                sampled=decision.sampled,
                **fields,
            )
        )

    def _keep(self, info: Mapping[str, Any]) -> None:
        """Keep what else the environment had to say about a step, as far as it is plain."""
        extra = {k: v for k, v in info.items() if k not in _TURN_INFO and isinstance(v, str | int | float | bool)}
        if extra:
            self.info.setdefault("steps", {})[str(len(self.turns))] = extra
