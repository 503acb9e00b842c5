"""Answers to many prompts at once.

Each distinct prompt is encoded once, in passes without padding, and only as far as no earlier turn has: keys and values
stay in pages until the weights change (``pages``). Then, on an accelerator, one captured graph makes a token of every
row at a time (``step``), and the host reads a token while the next is on its way; on a CPU a plain pass does
(``rows``).

Which rows share a pass, and what of a prompt was known, changes roundings. What is recorded are the log-probabilities
of what was really drawn. On a CPU the same waves since ``forget`` give the same bits: what is known, and what gives way
when memory is short, depends on what was asked for and on the budget alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from cuarl.policy.answering import draw_next, room, why_stop
from cuarl.policy.jobs import Job, SamplingHalted
from cuarl.policy.lanes import lanes, run_alone
from cuarl.policy.qwen_vl.engine.answer import Answer, chances, pages_for, state, truncated
from cuarl.policy.qwen_vl.engine.pages import PAGE, Node, OutOfPages, Pages
from cuarl.policy.qwen_vl.engine.prompts import PromptState, distinct, find_known, prefill, take_pages
from cuarl.policy.qwen_vl.engine.rows import Rows
from cuarl.policy.qwen_vl.engine.step import CHANCES, Flight, Step
from cuarl.policy.qwen_vl.engine.weights import Weights
from cuarl.policy.work import Work

if TYPE_CHECKING:
    from cuarl.policy.qwen_vl.policy import QwenVLPolicy

_SIZES = (4, 16, 64, 256)
"""Rows of a captured step: rows that end make room for a smaller one."""
_ROOM_AT_FIRST = 256
"""Tokens of an answer for which pages are held ready; more are found when they are needed."""
_ROOM_UNCAPTURED = 64
"""The same where pages are only needed when an answer is whole."""
_COMPACT_BELOW = 0.5
"""Share of unfinished rows at which dropping the others pays for copying what is kept of them."""
_ROWS_OF_A_LANE = 16
"""Rows that are worth another lane, which reads all weights again for every token."""
_WEIGHTS_OF_A_LANE = 64 << 20
"""Bytes of weights beyond which all threads read them together."""
_OLD = 8
"""Waves after which a prefix that nobody looked for gives way before the buffer grows."""


class Engine:
    """The sampler of one policy, whose weights are merged and fused anew when they have changed.

    ``budget_bytes`` bounds keys and values; None: half of the memory that is free when the first prompt comes, on a CPU
    2 GiB. ``stepwise`` answers by ``step``, captured where there is something to capture; None: on an accelerator.
    """

    def __init__(self, policy: QwenVLPolicy, *, budget_bytes: int | None = None, stepwise: bool | None = None) -> None:
        self.policy = policy
        self._stepwise = policy.device.type != "cpu" if stepwise is None else stepwise
        self.work = Work()
        self._budget = budget_bytes
        self._weights: Weights | None = None
        self._version: tuple[Any, ...] = ()
        self._forgotten = False
        self._buffer: list[torch.Tensor] = []
        self._pages = Pages(1)
        self._steps: dict[tuple[int, bool], Step] = {}
        self._memory: Any = None
        self._wanted = 0
        parts = (policy.base.model.language_model, policy.base.lm_head)
        self._watched = [p for part in parts for p in part.parameters() if p.requires_grad or policy.has_adapter]

    @property
    def nbytes(self) -> int:
        """Memory held: weights, keys and values."""
        cached: int = sum(b.nbytes for b in self._buffer)
        return cached + (0 if self._weights is None else self._weights.nbytes)

    def release(self) -> None:
        """Give all memory back; the next answers take it again."""
        self._steps.clear()
        self._weights, self._memory, self._version = None, None, ()
        self._buffer.clear()
        self._pages = Pages(1)

    def take_work(self) -> Work:
        """What was done since this was last called."""
        work, self.work = self.work, Work()
        return work

    def forget(self) -> None:
        """Compute every prompt anew from the next answers on."""
        self._forgotten = True

    @torch.inference_mode()
    def generate(self, jobs: Sequence[Job]) -> None:
        """Answer every job: its tokens, log-probabilities and stop reason are filled in.

        Raises RuntimeError for a prompt whose keys and values alone are beyond the budget, SamplingHalted once the
        policy is.
        """
        with ExitStack() as undo:
            # pages in use when sampling breaks off would stay so
            undo.callback(self.release)
            self._refresh()
            for part in self._parts(jobs):
                self._answer(part)
            undo.pop_all()

    # --- memory -----------------------------------------------------------------------------------------------------

    def _refresh(self) -> None:
        policy = self.policy
        adapters = [m.disable_adapters for m in policy.model.modules() if hasattr(m, "base_layer")]
        now = (policy.version, any(adapters), *(p._version for p in self._watched))
        if self._weights is None:
            self._weights = Weights(policy.base.model.language_model, packed=self._stepwise)
        if now != self._version or self._forgotten:
            self._pages.forget()
            self._forgotten = False
        if now != self._version:
            self._weights.refresh()
            self._version = now

    @property
    def _page_bytes(self) -> int:
        w = self._weights
        assert w is not None
        size: int = self.policy.dtype.itemsize
        return len(w.layers) * 2 * PAGE * w.kv_heads * w.head_size * size

    def _most(self) -> int:
        """The most pages that the budget allows."""
        if self._budget is None:
            device = self.policy.device
            free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else 4 << 30
            self._budget = free // 2
        return max(2, self._budget // self._page_bytes)

    def _parts(self, jobs: Sequence[Job]) -> Iterator[list[Job]]:
        """Jobs that fit into the budget together even if every answer becomes as long as it may."""
        limit, most = max(_SIZES), self._most() - 1
        part: list[Job] = []
        seen: set[object] = set()
        used = 0
        for job in jobs:
            own = pages_for(room(self.policy, job)) + 1
            prompt = pages_for(len(job.prompt.ids))
            if own + prompt > most:
                gib = (own + prompt) * self._page_bytes / 2**30
                raise RuntimeError(
                    f"a prompt of {len(job.prompt.ids)} tokens and its answer need {gib:.1f} GiB of keys "
                    f"and values, more than the budget of {(most + 1) * self._page_bytes / 2**30:.1f}"
                )
            key = (job.prompt.ids, tuple(s.digest for s in job.prompt.screenshots))
            more = own + (0 if key in seen else prompt)
            if part and (used + more > most or len(part) == limit):
                yield part
                part, seen, used, more = [], set(), 0, own + prompt
            part.append(job)
            seen.add(key)
            used += more
        if part:
            yield part

    def _ensure(self, count: int) -> None:
        """Have ``count`` pages that can be taken, rather by growing than by forgetting what the next turn may use."""
        pages = self._pages
        if pages.free < count:
            pages.retire(_OLD)
        if pages.free >= count and self._buffer:
            return
        needed = pages.count + count - pages.free
        self._wanted = max(self._wanted, needed)
        size = min(self._most(), max(self._wanted, pages.count * 5 // 4))
        if not self._buffer or size > pages.count:
            self._grow(max(2, size))

    def _grow(self, count: int) -> None:
        """Have room for ``count`` pages. Layer by layer, so that only one layer is there twice."""
        w = self._weights
        assert w is not None
        # a pool of memory for graphs ends with the last graph in it
        self._steps.clear()
        self._memory = None
        shape = (2, count * PAGE, w.kv_heads, w.head_size)
        for i in range(len(w.layers)):
            larger = torch.empty(shape, dtype=self.policy.dtype, device=self.policy.device)
            if i < len(self._buffer):
                larger[:, : self._buffer[i].shape[1]] = self._buffer[i]
                self._buffer[i] = larger
            else:
                larger[:, :PAGE].zero_()
                self._buffer.append(larger)
            del larger
        self._pages.grow(count)

    def _step(self, rows: int, cut: bool) -> Step:
        """A step of at least ``rows`` rows."""
        size = next(s for s in _SIZES if s >= rows)
        if (size, cut) not in self._steps:
            assert self._weights is not None
            if self._memory is None and self.policy.device.type == "cuda":
                self._memory = torch.cuda.graph_pool_handle()
            self._steps[size, cut] = Step(
                self.policy,
                self._weights,
                self._buffer,
                size,
                pages_for(self.policy.context) + 1,
                truncated=cut,
                memory=self._memory,
            )
        return self._steps[size, cut]

    # --- one wave ---------------------------------------------------------------------------------------------------

    def _answer(self, jobs: Sequence[Job]) -> None:
        policy = self.policy
        prompts, of = distinct(policy, jobs)
        limits = [room(policy, job) for job in jobs]
        missing = find_known(prompts, self._pages)
        at_first = _ROOM_AT_FIRST if self._stepwise else _ROOM_UNCAPTURED
        self._ensure(missing + sum(pages_for(min(limit, at_first)) + 1 for limit in limits))
        take_pages(prompts, self._pages)
        assert self._weights is not None
        last = prefill(policy, self._weights, self._buffer, prompts)
        answers = self._rows(jobs, prompts, of, limits)
        draw_next(policy, jobs, policy.decoder.logits(last[torch.tensor(of, device=last.device)]))
        self.work.prompts += len(prompts)
        self.work.prompt_tokens += sum(len(p.ids) for p in prompts)
        self.work.reused_tokens += sum(p.known for p in prompts)
        unfinished = [a for a in answers if a.job.stop is None]
        if unfinished:
            (self._decode if self._stepwise else self._decode_plainly)(unfinished)
        for answer in answers:
            answer.close(self._pages, policy.special.image)

    def _rows(
        self, jobs: Sequence[Job], prompts: Sequence[PromptState], of: Sequence[int], limits: Sequence[int]
    ) -> list[Answer]:
        """A row for each job: the full pages of its prompt are shared, a page that is only begun is its own."""
        chains: list[list[Node]] = []
        begun: list[list[int]] = []
        for prompt in prompts:
            known = len(prompt.chain)
            full = prompt.full - known
            chains.append(
                [
                    *prompt.chain,
                    *self._pages.remember(prompt.chain, prompt.keys[known : prompt.full], prompt.pages[:full]),
                ]
            )
            begun.append(prompt.pages[full:])
        answers: list[Answer] = []
        copies: list[tuple[int, int]] = []
        first = set(range(len(prompts)))
        for job, p, limit in zip(jobs, of, limits, strict=True):
            own = list(begun[p])
            if p in first:
                first.remove(p)
            else:
                self._pages.share(chains[p])
                own = self._pages.take(len(own))
                copies += zip(begun[p], own, strict=True)
            answers.append(Answer(job, prompts[p], chains[p], own, limit))
        self._copy(copies)
        return answers

    def _copy(self, pages: Sequence[tuple[int, int]]) -> None:
        if not pages:
            return
        source, target = torch.tensor(pages, device=self.policy.device).unbind(1)
        for layer in self._buffer:
            paged = layer.unflatten(1, (-1, PAGE))
            paged.index_copy_(1, target, paged.index_select(1, source))

    def _decode(self, answers: list[Answer]) -> None:
        """Draw the tokens behind the first. A token is read while the next is on its way."""
        cut = truncated([a.job for a in answers])
        self._reserve(answers, None)
        step = self._step(len(answers), cut)
        step.load(state(answers))
        step, flight = self._launch(step, answers)
        while True:
            ahead = None
            if not all(a.at_limit for a in answers if a.job.stop is None):
                step, ahead = self._launch(step, answers)
            step.stop(self._take(answers, flight))
            alive = [i for i, a in enumerate(answers) if a.job.stop is None]
            if not alive:
                return
            assert ahead is not None, "an answer at its limit has ended"
            flight = ahead
            if next(s for s in _SIZES if s >= len(alive)) < step.rows:
                self._take(answers, flight)
                alive = [i for i, a in enumerate(answers) if a.job.stop is None]
                if not alive:
                    return
                smaller = self._step(len(alive), cut)
                smaller.move(step, alive)
                answers = [answers[i] for i in alive]
                step, flight = self._launch(smaller, answers)

    def _decode_plainly(self, answers: list[Answer]) -> None:
        """The same, one token after the other; of small weights for some rows in each lane."""
        assert self._weights is not None
        if self._weights.nbytes <= _WEIGHTS_OF_A_LANE:
            found = run_alone([partial(self._decode_rows, group) for group in self._groups(answers)])
        else:
            found = [self._decode_rows(answers)]
        for done, parts in found:
            self.work.steps += done.steps
            self.work.decode_rows += done.decode_rows
            self.work.decoded_tokens += done.decoded_tokens
            for rows in parts:
                self._take_pages_for(rows.answers)
                rows.put_back()

    def _groups(self, answers: list[Answer]) -> list[list[Answer]]:
        """The rows of each lane."""
        found = lanes()
        count = 1 if found is None else min(found.count, max(1, len(answers) // _ROWS_OF_A_LANE))
        size = -(-len(answers) // count)
        return [answers[i : i + size] for i in range(0, len(answers), size)]

    def _decode_rows(self, answers: list[Answer]) -> tuple[Work, list[Rows]]:
        """Draw the tokens behind the first; what was done, and what was computed for which answers."""
        assert self._weights is not None
        work = Work()
        ended: list[Rows] = []
        rows = Rows(self.policy, self._weights, self._buffer, answers)
        tokens = torch.tensor([a.job.tokens[-1] for a in answers], device=self.policy.device)
        while True:
            work.steps += 1
            work.decode_rows += len(tokens)
            before = sum(len(a.job.tokens) for a in rows.answers)
            tokens = draw_next(self.policy, [a.job for a in rows.answers], rows.next(tokens))
            work.decoded_tokens += sum(len(a.job.tokens) for a in rows.answers) - before
            alive = [i for i, a in enumerate(rows.answers) if a.job.stop is None]
            if not alive:
                return work, [*ended, rows]
            if len(alive) <= _COMPACT_BELOW * len(tokens):
                ended.append(rows.split(alive))
                tokens = tokens[torch.tensor(alive, device=tokens.device)]

    def _take_pages_for(self, answers: Sequence[Answer]) -> None:
        """Pages for what is known of finished answers; none where there are none, so that it is computed anew."""
        known = [len(a.prompt.ids) + len(a.job.tokens) - 1 for a in answers]
        counts = [max(0, n // PAGE - len(a.pages)) for a, n in zip(answers, known, strict=True)]
        self._ensure(sum(counts))
        for answer, count in zip(answers, counts, strict=True):
            with suppress(OutOfPages):
                answer.own += self._pages.take(count)

    def _launch(self, step: Step, answers: Sequence[Answer]) -> tuple[Step, Flight]:
        if self.policy.halted():
            raise SamplingHalted
        step = self._reserve(answers, step) or step
        launched = answers[0].launched + 1
        if launched % CHANCES == 0:
            step.chance[: len(answers)].copy_(chances([a.job for a in answers], launched))
        flight = step.launch()
        for answer in answers:
            answer.launched += 1
        self.work.steps += 1
        self.work.decode_rows += step.rows
        return step, flight

    def _reserve(self, answers: Sequence[Answer], step: Step | None) -> Step | None:
        """Take pages for answers that are about to outgrow theirs; the step to go on with, if the buffer has moved."""
        growing = [(i, a, a.needs()) for i, a in enumerate(answers) if a.job.stop is None and a.needs()]
        if not growing:
            return None
        moved = None
        try:
            taken = self._pages.take(sum(n for _, _, n in growing))
        except OutOfPages:
            self._ensure(sum(n for _, _, n in growing))
            taken = self._pages.take(sum(n for _, _, n in growing))
            if step is not None:
                moved = self._step(step.rows, step.truncated)
                moved.move(step, range(len(answers)))
        rows: list[int] = []
        columns: list[int] = []
        start = 0
        for i, answer, count in growing:
            have = len(answer.chain) + len(answer.own)
            rows += [i] * count
            columns += range(have, have + count)
            answer.own += taken[start : start + count]
            start += count
        if step is not None:
            (moved or step).more_pages(rows, columns, taken)
        return moved

    def _take(self, answers: Sequence[Answer], flight: Flight) -> list[int]:
        """Add what has arrived; the rows that end with it."""
        ended: list[int] = []
        for i, (answer, token, logprob) in enumerate(zip(answers, *flight.read(), strict=False)):
            job = answer.job
            if job.stop is None:
                job.tokens.append(token)
                job.logprobs.append(logprob)
                job.stop = why_stop(self.policy, job)
                self.work.decoded_tokens += 1
                ended += [i] if job.stop is not None else []
        return ended
