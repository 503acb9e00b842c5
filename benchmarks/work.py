"""What sampling had to compute at least, by the recorded turns alone, beside what was computed by a run's metrics.

    python -m benchmarks.work                     the newest run in ./runs, step by step
    python -m benchmarks.work --run NAME --runs-dir runs

One JSON line a training step: tokens of prompts that were prefilled and those that had to be, at least (each beginning
that prompts and answers of a step share once); pictures that were encoded and distinct ones; padding. It holds for
runs whose episodes of a step all run at once, in turn with training: the turns of one number are one batch then.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuarl.policy.qwen_vl.engine.pages import PAGE
from cuarl.trajectory import Sampled


@dataclass(slots=True)
class Counted:
    """Of the batches of a step: tokens of distinct prompts, and how many of them had to be computed."""

    prompts: int = 0
    tokens: int = 0
    by_page: int = 0
    """Where what is known is known by whole pages, and nothing of the same batch is."""
    necessary: int = 0
    """Where each token that begins alike is computed once, but the last one of a prompt, which its answer needs."""


def count(batches: Sequence[Sequence[Sampled]], image: int, page: int = PAGE) -> Counted:
    """Slowly, token by token. ``image`` is the id that stands for a part of a picture."""
    found = Counted()
    before: dict[Any, Any] = {}  # all that was computed in earlier batches, as a tree of tokens
    ever: dict[Any, Any] = {}  # and in this one
    for batch in batches:
        prompts = {(s.prompt_ids, tuple(i.digest for i in s.images)): _named(s, image) for s in batch}
        for tokens in prompts.values():
            found.prompts += 1
            found.tokens += len(tokens)
            found.by_page += len(tokens) - min(_known(before, tokens) // page, (len(tokens) - 1) // page) * page
            found.necessary += len(tokens) - min(_known(ever, tokens), len(tokens) - 1)
            _add(ever, tokens)
        for s in batch:
            # the last token of an answer was drawn, and not put in
            whole = [*_named(s, image), *s.token_ids[:-1]]
            _add(before, whole)
            _add(ever, whole)
    return found


def decoding_rows(batches: Sequence[Sequence[Sampled]]) -> int:
    """Rows of the passes behind the first token of each answer: those of finished ones go when half have finished."""
    rows = 0
    for batch in batches:
        left = [len(s.token_ids) - 1 for s in batch if len(s.token_ids) > 1]
        while left:
            rows += len(left)
            left = [n - 1 for n in left]
            alive = [n for n in left if n > 0]
            left = alive if len(alive) <= len(left) / 2 else left
    return rows


def _named(sampled: Sampled, image: int) -> list[Hashable]:
    """The tokens of a prompt; one of a picture says of which it is, and where in it."""
    named: list[Hashable] = []
    picture, at = -1, 0
    for i, token in enumerate(sampled.prompt_ids):
        if token != image:
            named.append(token)
            continue
        if i == 0 or sampled.prompt_ids[i - 1] != image:
            picture, at = picture + 1, 0
        named.append((sampled.images[picture].digest, at))
        at += 1
    return named


def _known(tree: dict[Any, Any], tokens: Sequence[Hashable]) -> int:
    for i, token in enumerate(tokens):
        if token not in tree:
            return i
        tree = tree[token]
    return len(tokens)


def _add(tree: dict[Any, Any], tokens: Sequence[Hashable]) -> None:
    for token in tokens:
        tree = tree.setdefault(token, {})


def main() -> None:
    from cuarl.policy.load import load_renderer
    from cuarl.policy.spec import ModelSpec
    from cuarl.store import Store

    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs-dir", type=Path, default=Path("runs"))
    options.add_argument("--run")
    options.add_argument("--model", default="tiny")
    given = options.parse_args()
    image = load_renderer(ModelSpec(model=given.model)).special.image
    with Store.open(f"sqlite:///{given.runs_dir}/cuarl.db", f"{given.runs_dir}/blobs") as store:
        run = next(r for r in store.runs() if given.run in (None, r.id, r.name))
        batches: dict[int, dict[int, list[Sampled]]] = defaultdict(lambda: defaultdict(list))
        for e in store.episodes(run=run.id, purpose="train"):
            for turn in store.trajectory(e.episode_id).turns:
                if turn.sampled is not None:
                    batches[e.step][turn.index].append(turn.sampled)
    for line in Path(run.directory, "metrics.jsonl").read_text().splitlines():
        told = json.loads(line)
        if told["step"] in batches and "sampling/prefilled_tokens" in told:
            of_step = [batch for _, batch in sorted(batches[told["step"]].items())]
            print(json.dumps(_compared(told, of_step, image)), flush=True)


def _compared(told: dict[str, float], batches: Sequence[Sequence[Sampled]], image: int) -> dict[str, float]:
    found = count(batches, image)
    distinct = len({picture.digest for batch in batches for s in batch for picture in s.images})
    encoded = told["sampling/pictures"] + told["train/pictures"]
    return {
        "step": told["step"],
        "prefilled": told["sampling/prefilled_tokens"],
        "necessary": found.necessary,
        "prefilled_by_necessary": round(told["sampling/prefilled_tokens"] / found.necessary, 3),
        "encoded_by_distinct_pictures": round(encoded / distinct, 3),
        "sampling_idle": round(told["sampling/idle_frac"], 3),
        "training_padding": round(told.get("train/padding_frac", 0.0), 3),
        "idle": round(told["perf/idle_frac"], 3),
    }


if __name__ == "__main__":
    main()
