"""How well the base can do what it was taught: greedy answers to single requests about screens it never saw."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer

from cuarl.pretrain import skills
from cuarl.pretrain.dialogues import Tokens, screen_of
from cuarl.pretrain.pretrain import Trainee
from cuarl.pretrain.screens import picture, random_world
from cuarl.sim.phone.world import PROFILES

_ANSWER_TOKENS = 14


@dataclass(frozen=True)
class Exam:
    """A fixed set of screens and requests, one request a screen, as it is in use."""

    screens: np.ndarray
    """(N, height, width, 3) uint8."""
    rounds: tuple[skills.Round, ...]
    sizes: tuple[tuple[int, int], ...]

    @classmethod
    def drawn(cls, count: int, seed: int = 7, profile: str = "small") -> Exam:
        """Screens of seeds that no training batch uses."""
        pictures: list[np.ndarray] = []
        rounds: list[skills.Round] = []
        sizes: list[tuple[int, int]] = []
        while len(rounds) < count:
            rng = random.Random(f"exam/{seed}/{len(rounds)}")
            world = random_world(rng, PROFILES[profile])
            screen = screen_of(world)
            rounds.append(skills.rounds(rng, screen, 1)[0])
            sizes.append((screen.width, screen.height))
            pictures.append(np.asarray(picture(world)))
        return cls(np.stack(pictures), tuple(rounds), tuple(sizes))

    def scores(self, trainee: Trainee, tokenizer: Tokenizer, system_prompt: str) -> dict[str, float]:
        """Share of right answers by skill, as ``exam/SKILL``."""
        device = next(trainee.parameters()).device
        height, width = self.screens.shape[1:3]
        tokens = Tokens(tokenizer, system_prompt, width, height)
        prompts = [tokens.prompt(r.request) for r in self.rounds]
        screens = torch.from_numpy(self.screens).to(device)
        answers: list[list[int]] = []
        for i in range(0, len(prompts), 256):
            answers += greedy(trainee, screens[i : i + 256], prompts[i : i + 256], tokens.end, tokens.pad)
        right: dict[str, list[bool]] = {}
        for r, size, ids in zip(self.rounds, self.sizes, answers, strict=True):
            right.setdefault(r.skill, []).append(matches(tokenizer.decode(ids, skip_special_tokens=False), r, size))
        return {f"exam/{skill}": float(np.mean(v)) for skill, v in sorted(right.items())}


def greedy(
    trainee: Trainee, screens: torch.Tensor, prompts: Sequence[Sequence[int]], end: int, pad: int
) -> list[list[int]]:
    """Likeliest answers, without the end token; a plain loop without a cache, since it runs rarely."""
    trainee.eval()
    rows = [list(p) for p in prompts]
    open_rows = set(range(len(rows)))
    for _ in range(_ANSWER_TOKENS):
        longest = max(map(len, rows))
        ids = torch.tensor([r + [pad] * (longest - len(r)) for r in rows], device=screens.device)
        at = torch.tensor([len(r) - 1 for r in rows], device=screens.device)
        with torch.no_grad(), torch.autocast(screens.device.type, torch.bfloat16, enabled=screens.device.type != "cpu"):
            hidden = trainee.hidden(screens, ids)
            logits = trainee.logits(hidden[torch.arange(len(rows), device=screens.device), at])
        for i, token in enumerate(logits.argmax(-1).tolist()):
            if i in open_rows:
                rows[i].append(token)
                if token == end:
                    open_rows.discard(i)
        if not open_rows:
            break
    trainee.train()
    found = [r[len(p) :] for r, p in zip(rows, prompts, strict=True)]
    return [r[:-1] if r and r[-1] == end else r for r in found]


def matches(text: str, wanted: skills.Round, size: tuple[int, int]) -> bool:
    """Whether an answer does what was asked: a tap inside the box, a swipe the right way, else the very same call."""
    if text == wanted.call:
        return True
    got, right = _arguments(text), _arguments(wanted.call)
    if not got or not right or got.get("action") != right["action"]:
        return False
    try:
        if wanted.box is not None:
            x, y = (got["coordinate"][k] * size[k] / 1000 for k in (0, 1))
            return bool(wanted.box[0] <= x < wanted.box[2] and wanted.box[1] <= y < wanted.box[3])
        if got["action"] == "swipe":
            return all(
                np.sign(_shift(got)) == np.sign(np.where(np.abs(_shift(right)) > 60, _shift(right), _shift(got)))
            )
    except (KeyError, TypeError, IndexError):
        return False
    return False


def _shift(arguments: dict[str, Any]) -> np.ndarray:
    shift: np.ndarray = np.array(arguments["coordinate2"]) - np.array(arguments["coordinate"])
    return shift


def _arguments(text: str) -> dict[str, Any]:
    inner = text.removeprefix("<tool_call>\n").removesuffix("\n</tool_call>")
    try:
        found = json.loads(inner)["arguments"]
    except (ValueError, KeyError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}
