"""Proves that what was recorded is what was sampled: log-probabilities of stored turns, computed again."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cuarl.config.schema import ExperimentConfig
from cuarl.errors import BarMissed, ConfigError
from cuarl.run.checkpoints import POINTER
from cuarl.store.redaction import redacted_by
from cuarl.trajectory import Sampled, Trajectory
from cuarl.types import Record, Screenshot
from cuarl.workflow.players import load_model
from cuarl.workflow.targets import checkpoint
from cuarl.workflow.upstream import WEIGHTS

if TYPE_CHECKING:
    from cuarl.policy.base import Policy

_ROWS = 32
ADAPTERS = "adapters"
"""Folder of a run with what a server was given."""
NumberFormat = Literal["float32", "float16", "bfloat16"]
BARS: Mapping[NumberFormat, float] = {"float32": 1e-4, "float16": 0.03, "bfloat16": 0.25}
"""Largest difference that rounding explains, in nats, from the finest format to the coarsest: where both sides compute
in float32 it was below 2e-5; bfloat16 has eight bits for a number, and differed by up to 0.08."""


class Verified(Record):
    """How far the recorded log-probabilities of one policy version are from the recomputed ones."""

    policy_version: int
    turns: int
    """Turns with token ids and log-probabilities."""
    tokens: int
    unproved: int = 0
    """Turns without: nothing was sampled (a person's, a plan's, a scripted agent's), or it was not told. There is
    nothing to prove in them."""
    largest: float | None
    """Largest absolute difference, in nats, times the temperature where that is below 1 (it divides the logits, and
    what they are off by); None where the version's weights are gone."""
    mean: float | None = None
    """Mean of the absolute differences, in nats; of weights that are others it is larger, however coarse the numbers
    are."""
    dtype: NumberFormat = "float32"
    """The coarser of the formats in which the turns were sampled and recomputed."""
    worst: str = ""
    """Episode and turn of the largest difference."""

    @property
    def shown(self) -> str | None:
        """The difference for people."""
        if self.largest is None:
            return "no weights" if self.turns else None
        return f"{self.largest:.1e}"

    @property
    def shown_mean(self) -> str | None:
        """The mean for people."""
        return None if self.mean is None else f"{self.mean:.1e}"


@dataclass(frozen=True, slots=True)
class _Turn:
    name: str
    sampled: Sampled


def verify(
    config: ExperimentConfig,
    run: Path,
    kind: str,
    trajectories: Iterable[Trajectory],
    picture: Callable[[str], Screenshot],
    sampled_in: NumberFormat | None = None,
) -> Iterator[Verified]:
    """Recompute every stored turn with token ids and log-probabilities, one policy version after the other.

    Turns without are counted.

    ``sampled_in`` is the format in which the turns were sampled, where it is not that of the run's configuration.

    The weights of version n are the run's checkpoint of step n, or the adapter that its server was given then; a
    version of which neither was kept is reported without a difference. Raises ConfigError where samples were truncated,
    since their distribution can't be rebuilt, and where pictures are not those that the model saw.
    """
    if config.top_p < 1 or config.top_k > 0:
        raise ConfigError(
            "the run sampled with top_p or top_k, so its log-probabilities are of a truncated distribution",
            where=str(run),
        )
    turns: dict[int, list[_Turn]] = defaultdict(list)
    unproved: Counter[int] = Counter()
    for t in trajectories:
        if by := redacted_by(t.info):
            raise ConfigError(
                f"the pictures of this episode were changed by {by}, so they are not what the model saw",
                where=t.episode_id,
                hint="verify the run in the store that it was recorded in",
            )
        for turn in t.turns:
            if turn.sampled and turn.sampled.exact and turn.sampled.logprobs and turn.sampled.prompt_ids:
                turns[turn.sampled.policy_version].append(_Turn(f"{t.episode_id}#{turn.index}", turn.sampled))
            else:
                unproved[turn.sampled.policy_version if turn.sampled else t.policy_version] += 1
    for version in sorted(turns.keys() | unproved.keys()):
        asked = turns.get(version, [])
        policy = _weights(config, run, kind, version) if asked else None
        if policy is None:
            found = Verified(policy_version=version, turns=len(asked), tokens=0, largest=None)
        else:
            found = _compare(policy, version, asked, picture, sampled_in)
        yield found.model_copy(update={"unproved": unproved[version]})


def judged(versions: Sequence[Verified], bar: float | None, run: Path, *, elsewhere: bool) -> str:
    """What came of it, in words; ``bar`` None goes by the number format. ``elsewhere``: a server sampled.

    Raises BarMissed for a difference above the bar, and ConfigError if there was nothing to verify.
    """
    checked = [v for v in versions if v.largest is not None]
    turns, left = sum(v.turns for v in checked), sum(v.turns for v in versions if v.largest is None)
    unproved = sum(v.unproved for v in versions)
    beside = f"; {left} turns of versions without a checkpoint were left out" if left else ""
    if unproved:
        beside += f"; {unproved} turns have no log-probabilities, so there is nothing to prove in them"
    if not checked:
        raise ConfigError(
            "there is nothing to verify: no stored turn has token ids, log-probabilities and its policy's weights"
            + beside,
            where=str(run),
        )
    worst = max(checked, key=lambda v: v.largest or 0.0)
    result = f"largest difference {worst.shown} over {turns} turns of {len(checked)} policy versions{beside}"
    allowed, coarse = BARS[worst.dtype] if bar is None else bar, BARS["bfloat16"]
    if (worst.largest or 0.0) <= allowed:
        return f"{result}; the bar is {allowed:g} ({worst.dtype})"
    rounding = bar is None and elsewhere and allowed < (worst.largest or 0.0) <= coarse
    hint = f"--dtype bfloat16, if that is what the server computes in (its bar is {coarse:g})" if rounding else None
    raise BarMissed(f"{result}; the bar is {allowed:g} ({worst.dtype})", where=worst.worst, hint=hint)


def _weights(config: ExperimentConfig, run: Path, kind: str, version: int) -> Policy | None:
    swapped = _swapped_in(run, version) if kind == "serve" else None
    if swapped is not None:
        return None if swapped.startswith("tinker://") else load_model(config, adapter=swapped)
    if kind == "train" and version > 0:
        folder = run / "checkpoints" / f"step-{version:06d}"
        if (folder / POINTER).is_file():
            return None
        if not folder.is_dir():
            handed = run / ADAPTERS / f"step-{version:06d}"
            return load_model(config, adapter=str(handed)) if handed.is_dir() else None
    elif config.load_checkpoint_path:
        folder = Path(config.load_checkpoint_path)
    else:
        return load_model(config)
    found = checkpoint(folder)
    return load_model(config, model=found.model, adapter=found.adapter)


def _swapped_in(run: Path, version: int) -> str | None:
    """Folder of the adapter that a server had as ``version``, or its path at Tinker; None for what it started with."""
    noted = run / WEIGHTS
    paths = json.loads(noted.read_text(encoding="utf-8")) if noted.is_file() else {}
    found: str | None = paths.get(str(version))
    return found


def _compare(
    policy: Policy,
    version: int,
    turns: Sequence[_Turn],
    picture: Callable[[str], Screenshot],
    sampled_in: NumberFormat | None,
) -> Verified:
    import torch

    from cuarl.policy.inputs import Row
    from cuarl.policy.score import Scorer

    scorer, largest, worst, tokens, total = Scorer(policy), 0.0, "", 0, 0.0
    ordered = sorted(turns, key=lambda t: len(t.sampled.prompt_ids))
    for part in (ordered[i : i + _ROWS] for i in range(0, len(ordered), _ROWS)):
        rows = [
            Row(t.sampled.prompt_ids, tuple(picture(ref.digest) for ref in t.sampled.images), t.sampled.token_ids)
            for t in part
        ]
        with torch.no_grad():
            temperatures = torch.tensor([t.sampled.temperature for t in part], device=policy.device)
            scores = scorer(policy.collate(rows, padding="right"), temperatures).logprobs.double().cpu()
        for turn, scored in zip(part, scores, strict=True):
            recorded = torch.tensor(turn.sampled.logprobs, dtype=torch.float64)
            differences = (scored[: len(recorded)] - recorded).abs() * min(turn.sampled.temperature or 1.0, 1.0)
            difference = float(differences.max())
            tokens, total = tokens + len(recorded), total + float(differences.sum())
            if not difference <= largest:
                largest, worst = difference, turn.name
    return Verified(
        policy_version=version,
        turns=len(turns),
        tokens=tokens,
        largest=largest,
        worst=worst,
        mean=total / tokens,
        dtype=_coarser(_format(policy), sampled_in or "float32"),
    )


def _format(policy: Policy) -> NumberFormat:
    """The number format that the base computes in: an adapter's is float32 in any case, and four bits are unpacked."""
    floating = [p for p in policy.model.parameters() if p.is_floating_point()]
    sizes = {p.dtype: 0 for p in floating}
    for parameter in floating:
        sizes[parameter.dtype] += parameter.numel()
    name = str(max(sizes, key=sizes.__getitem__)).removeprefix("torch.")
    return next((known for known in BARS if known == name), "float32")


def _coarser(one: NumberFormat, other: NumberFormat) -> NumberFormat:
    return max(one, other, key=lambda name: BARS[name])
