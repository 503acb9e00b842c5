"""Writes ``docs/results/speed.md`` from the results beside it: ``python -m benchmarks.peers.table``.

Results are the JSON lines of ``python -m benchmarks.peers --out docs/results/speed/NAME.jsonl``; of a cell that was
measured several times the last counts, with TRL's of the same run if it is there. Refuses pairs of different work.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from benchmarks.peers.results import ROOT, differences, read
from benchmarks.peers.work import SHAPES

RESULTS = ROOT / "docs" / "results" / "speed"
PAGE = ROOT / "docs" / "results" / "speed.md"
Result = dict[str, Any]

_HEAD = """\
# Speed beside TRL

Written by `python -m benchmarks.peers.table` from the JSON lines in `docs/results/speed/`; `python -m benchmarks.peers`
measures them.

A step is a rollout of all episodes and one AdamW step on them. On both sides the same: a random model of the shape
named (float32 on a CPU, bfloat16 on a GPU), LoRA of rank 16 on the language model's linear layers, the tokenizer, the
phone that is drawn, the whole history in every prompt, and the lengths of answers: some sampled letters, then a call
of 29 tokens whose digits are sampled; "mixed" are 0 to 22 letters, by attempt and turn. Sizes of forward passes in
training and gradient checkpointing are the same, and on a CPU threads that wait don't spin. Prompts are compared
token by token (digits and letters of earlier answers aside), as are the tokens of all answers and of all trained
sequences; a difference stops this page.

Not the same, as each ships it: TRL samples with transformers' `generate` and keeps no log-probabilities, encodes the
whole history anew in each turn, and carries out the episodes' clicks one after another (an asynchronous
environment's, too). It closes episodes the cheapest way that it allows, without an answer after the last click. TRL
with vLLM was not measured. Rewards mean nothing here: cuarl calls every second attempt a success, so that no episode
is left out of training.

The first step is the one to warm up, with all that is compiled, captured or opened in it; then comes the median of
the steps behind it, smallest and largest in brackets. Memory is the most that tensors took on the GPU, on a CPU the
most that the process took. "TRL ÷ cuarl" says how many times as long TRL takes."""
_COLUMNS = (
    "turns", "screen", "TRL: step, s", "rollout + update", "first step", "cuarl: step, s", "rollout + update",
    "first step", "TRL ÷ cuarl: step", "rollout", "update", "first step", "GiB: TRL", "cuarl",
)  # fmt: skip


def page(results: Sequence[Result]) -> str:
    """The page. Exits if the sides of a pair did not do the same."""
    return "\n\n".join([_HEAD, *(_sections(results) if results else ["Nothing has been measured yet."])]) + "\n"


def _sections(results: Sequence[Result]) -> Iterator[str]:
    def key(pair: tuple[Result | None, Result]) -> tuple[str, str]:
        return pair[1]["hardware"], _setting(pair[1])

    found = sorted(pairs(results), key=lambda pair: (*key(pair), *_order(pair[1])))
    for (hardware, setting), rows in groupby(found, key):
        of_part = list(rows)
        yield f"## {hardware}"
        yield setting
        yield "\n".join([_line(_COLUMNS), _line(["---"] * len(_COLUMNS)), *(_line(_row(*pair)) for pair in of_part)])
        yield "\n".join(_notes([result for pair in of_part for result in pair if result]))


def pairs(results: Iterable[Result]) -> list[tuple[Result | None, Result]]:
    """TRL's and cuarl's result of each cell. Without TRL's, or where it failed, the pair has what there is."""
    theirs: dict[str, list[Result]] = {}
    ours: dict[str, Result] = {}
    for result in results:
        cell = json.dumps([result["hardware"], result["work"]], sort_keys=True)
        if result["side"] == "trl":
            theirs.setdefault(cell, []).append(result)
        else:
            ours[f"{cell} {result['activation_gib']}"] = result
    found: list[tuple[Result | None, Result]] = []
    for key, own in ours.items():
        of_cell = theirs.get(key.rpartition(" ")[0], [])
        trl = next((r for r in reversed(of_cell) if r["run"] == own["run"]), of_cell[-1] if of_cell else None)
        if trl and "failed" not in trl and "failed" not in own and (wrong := differences(trl, own)):
            sys.exit(f"{own['cell']} of {own['run']}: the sides did not do the same: {'; '.join(wrong)}")
        found.append((trl, own))
    return found


def _setting(result: Result) -> str:
    work = result["work"]
    parts = [f"The shape of {SHAPES[work['shape']]}", f"{work['batch']} episodes in groups of {work['group']}"]
    parts += [f"{work['think']} letters before each call"] if work["think"] else []
    parts += [f"{work['micro']} sequences a forward pass of training"]
    parts += ["gradient checkpointing"] if work["checkpointing"] else []
    parts += [f"of whose activations cuarl keeps {result['activation_gib']:g} GiB"] if result["activation_gib"] else []
    return f"{', '.join(parts)}."


def _order(result: Result) -> tuple[Any, ...]:
    work = result["work"]
    return work["mixed"], work["delay_ms"], work["width"] * work["height"], work["turns"]


def _row(trl: Result | None, own: Result) -> list[str]:
    work = own["work"]
    marks = ["mixed"] * work["mixed"] + [f"{work['delay_ms']} ms a click"] * bool(work["delay_ms"])
    cells = [str(work["turns"]), ", ".join([f"{work['width']}×{work['height']}", *marks])]
    for result in (trl, own):
        cells += _seconds(result)
    for name in ("step_s", "rollout_s", "update_s", "first_step_s"):
        known = trl and name in trl and name in own
        cells.append(f"{trl[name] / own[name]:.1f}" if trl and known else "")
    # the ratio that counts stands out
    cells[8] = f"**{cells[8]}**" if cells[8] else ""
    return cells + [_memory(result) for result in (trl, own)]


def _seconds(result: Result | None) -> list[str]:
    if result is None:
        return ["not measured", "", ""]
    if "failed" in result:
        return [f"failed: {result['failed']}".replace("|", "/"), "", ""]
    spread = f"{result['step_s']:.2f} ({result['step_min_s']:.2f}–{result['step_max_s']:.2f})"
    return [spread, f"{result['rollout_s']:.2f} + {result['update_s']:.2f}", f"{result['first_step_s']:.2f}"]


def _memory(result: Result | None) -> str:
    if result is None or "failed" in result:
        return ""
    on_gpu = max(result["rollout_gib"], result["update_gib"])
    return f"{on_gpu:.1f}" if result["work"]["device"] == "cuda" else f"{result['rss_gib']:.2f}"


def _notes(results: Sequence[Result]) -> Iterator[str]:
    """Of which commit, with which versions, and on a CPU how busy the machine was."""
    yield from dict.fromkeys(map(_about, results))
    loads = [result["load"] for result in results]
    if results[0]["work"]["device"] == "cpu":
        yield f"- Load of the machine before each of these: {min(loads):g} to {max(loads):g}."


def _about(result: Result) -> str:
    commit = result["commit"] or "an unknown commit"
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    return f"- {result['run']}: cuarl at {commit}, medians of {result['work']['steps']} steps; {versions}."


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(read(sorted(RESULTS.glob("*.jsonl")))), encoding="utf-8")
    print(PAGE.relative_to(ROOT))


if __name__ == "__main__":
    main()
