"""Runs one episode: one environment, one agent, one task, to one ``Trajectory``.

This is the only place of the package that catches broadly. Every failure belongs to one boundary: it is raised typed at
its source, or wrapped once here by the seam it came through, and becomes the ``Failure`` of the record. What the policy
brings about itself (malformed output, loops, running out of turns or time) is a stop reason and is scored.

Calls in flight at the deadline are abandoned by cancelling them, so an environment or a sampler must let itself be
cancelled: a blocking library belongs into ``anyio.to_thread.run_sync(..., abandon_on_cancel=True)``.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import anyio

from cuarl import objects
from cuarl.agent.base import Agent, Decision
from cuarl.env.base import Env, JudgingEnv, LedEnv
from cuarl.env.durations import expected_s
from cuarl.errors import (
    AgentError,
    ConfigError,
    CuarlError,
    EnvError,
    PrerequisiteError,
    RewardError,
    RolloutError,
    SamplerError,
)
from cuarl.pacing import own_pass
from cuarl.rollout.loop import LoopGuard
from cuarl.rollout.opinion import INFO, Seen
from cuarl.rollout.record import Recorder
from cuarl.rollout.reward import score
from cuarl.rollout.seeds import turn_seed
from cuarl.rollout.setup import Episode, Opine, Setup
from cuarl.rollout.spec import EpisodeSpec
from cuarl.safe_text import loggable
from cuarl.trajectory import Trajectory, Verdict
from cuarl.types import Answer, Failure, Finish, ImageRef, StepResult, StopReason

logger = logging.getLogger(__name__)
T = TypeVar("T")

DOWN_S = "down_s"
"""What a step says of how long its device was not there: the episode's deadline is put off by it."""
GOAL = "goal"
"""Text field of the first observation by which an environment words the goal, where only it can."""


async def run_episode(
    spec: EpisodeSpec, setup: Setup, *, on_cancel: Callable[[Episode], None] | None = None
) -> Episode:
    """Run ``spec`` to its end and return its record, whatever goes wrong inside.

    The environment is always closed, within ``limits.close_s``. When cancelled from outside, ``on_cancel`` is given
    what there is (stop reason CANCELLED) and the cancellation goes on. Raises ConfigError or PrerequisiteError as they
    are: they would spoil every other episode too.
    """
    if setup.elsewhere is not None:
        return await setup.elsewhere(spec, setup, on_cancel)
    run = _Run(spec, setup)
    try:
        with setup.join():
            await run.play()
        await run.judge()
    except anyio.get_cancelled_exc_class():
        run.cancelled()
        await run.close()
        if on_cancel is not None:
            on_cancel(run.episode())
        raise
    finally:
        await run.close()
        setup.observer.phase(spec, "done")
    return run.episode()


async def reply_to(ask: Callable[[], Awaitable[T]]) -> T | CuarlError:
    """What a call of an agent's gives, or why it fails, for an agent that runs in another process."""
    try:
        return await ask()
    except CuarlError as error:
        return error
    except Exception as e:
        return _wrapped(AgentError, "the agent", e)


def _wrapped(error: type[RolloutError], name: str, e: Exception) -> RolloutError:
    own = objects.own_frame(e)
    made = error(f"{name} failed: {type(e).__name__}: {e}{f' ({own})' if own else ''}")
    made.__cause__ = e
    return made


def lost(spec: EpisodeSpec, setup: Setup, error: RolloutError) -> Episode:
    """The record of an episode of which nothing is left but why."""
    run = _Run(spec, setup)
    run.fail(error)
    return run.episode()


@dataclass(slots=True)
class _Call:
    """The latest call through a seam: whose fault it is when it fails, and since when it has been running."""

    error: type[RolloutError]
    name: str
    since: float
    expected_s: float = 0.0


class _Run:
    """The mutable state of one running episode."""

    def __init__(self, spec: EpisodeSpec, setup: Setup) -> None:
        self.spec, self.setup, self.limits = spec, setup, setup.limits
        self.stop: StopReason | None = None
        self._failure: Failure | None = None
        self._verdict: Verdict | None = None
        self._record = Recorder()
        self._max_turns = min(spec.task.max_steps, setup.limits.max_turns)
        self._record.info |= {"sampling_seed": spec.sampling_seed, "max_turns": self._max_turns}
        self._started_at, self._start = setup.now(), setup.clock()
        self._deadline = self._start + self.limits.deadline_s
        self._until = self._deadline
        self._scope = anyio.CancelScope()
        self._call = _Call(EnvError, "creating the environment", self._start)
        self._undone: tuple[Decision, float, float] | None = None
        self._env: Env | None = None
        self._agent: Agent | None = None
        self._before: Mapping[str, Any] = {}
        self._answer: str | None = None
        self._claimed: bool | None = None
        self._invalid = 0
        self._loop = LoopGuard(self.limits.loop_threshold)
        self._device = ""
        self._ready_s: float | None = None
        self._checked: tuple[float, float] | None = None

    # --- the course of an episode ----------------------------------------------------------------------------------

    async def play(self) -> None:
        """From nothing to a stop reason."""
        with self._scope as scope, self.setup.pausable(scope):
            self._bound(self._deadline)
            try:
                await self._set_up()
                while self.stop is None:
                    await self._turn()
            except RolloutError as e:
                # A call that turns its cancellation into an error of its own has still run out of time.
                if scope.cancel_called:
                    self._overrun()
                else:
                    self.fail(e)
        if scope.cancelled_caught:
            self._overrun()

    async def _set_up(self) -> None:
        spec = self.spec
        self.setup.observer.phase(spec, "creating")
        with self._through(EnvError, "creating the environment"):
            self._env = env = await self.setup.make_env(spec.task)
        with self._through(AgentError, "creating the agent"):
            self._agent = self.setup.make_agent(spec, env)
        if not env.capabilities.state and any(c.path != "answer" for c in spec.task.checks):
            raise EnvError(f"the environment can't read the state that task {spec.task.task_id} is judged by")
        with self._through(EnvError, "the reset"):
            shown = await env.reset(spec.task, spec.seed)
        self._record.show(shown)
        self._started(env)
        if GOAL in shown.text:  # told by the device itself, after its reset
            self.spec = replace(spec, task=spec.task.model_copy(update={"goal": shown.text[GOAL]}))
        if env.capabilities.state:
            with self._through(EnvError, "reading the state"):
                self._before = await env.state()

    def _started(self, env: Env) -> None:
        """The first screen is there."""
        # read once the reset is over: many backends know their device only then
        self._device = str(getattr(env, "device_name", ""))
        self._ready_s = self.setup.clock() - self._start
        self.setup.observer.phase(self.spec, "acting", self._device)
        self.setup.observer.screen(self.spec, self._record.observation.screenshot)

    async def _turn(self) -> None:
        self._bound(min(self._deadline, self.setup.clock() + self.limits.turn_s))
        # Environments and agents in this process never wait: give other tasks, and the deadline, their chance.
        await own_pass()
        if len(self._record.turns) >= self._max_turns:
            self.stop = StopReason.MAX_TURNS
            return
        begin, at = self.setup.clock(), self.setup.now()
        decision = await self._decide()
        if decision.too_long is not None:
            self.stop = StopReason.CONTEXT_FULL
            self._record.info["prompt_tokens_needed"] = decision.too_long.needed
            return
        if decision.skipped:
            self.stop = StopReason.CANCELLED
            return
        decided = self.setup.clock()
        self._undone = (decision, at, decided - begin)
        shown = self._record.shown
        result = await self._carry_out(decision)
        self._undone = None
        if result is not None:  # the time that the device was not there is not the policy's
            self._deadline += float(result.info.get(DOWN_S, 0.0))
        self._record.turn(decision, result, started_at=at, model_s=decided - begin, env_s=self.setup.clock() - decided)
        self.setup.observer.turn(self.spec, self._record.turns[-1])
        self.setup.observer.screen(self.spec, self._record.observation.screenshot)
        self.stop = self._why_stop(decision, result, shown)

    async def _decide(self) -> Decision:
        assert self._agent is not None
        seed = turn_seed(self.spec.sampling_seed, len(self._record.turns))
        with self._through(AgentError, "the agent"):
            return await self._agent.act(self.spec.task, self._record.observation, self._record.turns, seed)

    async def _carry_out(self, decision: Decision) -> StepResult | None:
        """Step the environment; None if this decision does not reach it."""
        assert self._env is not None
        action = decision.action
        if isinstance(action, Finish):
            self._claimed, self._answer = action.success, action.message or self._answer
            return None
        if isinstance(action, Answer):
            self._answer = action.text
            if "answer" not in self._env.capabilities.actions:
                return None
        if action is None:
            return await self._look() if decision.acted else None
        takes_s = expected_s(action)
        self._bound(min(self._deadline, self._until + takes_s))
        with self._through(EnvError, f"the action {action.kind}", takes_s):
            return await self._env.step(action)

    async def _look(self) -> StepResult:
        assert isinstance(self._env, LedEnv)
        with self._through(EnvError, "the agent program"):
            return await self._env.look()

    def _why_stop(self, decision: Decision, result: StepResult | None, shown: ImageRef) -> StopReason | None:
        if decision.acted:
            return StopReason.ENV_DONE if result is not None and result.terminated else None
        if decision.action is None:
            self._invalid += 1
            return StopReason.INVALID_ACTIONS if self._invalid >= self.limits.max_invalid else None
        self._invalid = 0
        if isinstance(decision.action, Finish):
            return StopReason.DONE
        if result is not None and (result.terminated or result.truncated):
            return StopReason.ENV_DONE
        if self._loop.repeats(shown.digest, decision.action, shown.width):
            return StopReason.REPETITIVE_LOOP
        return None

    async def judge(self) -> None:
        """Read the state at the end and ask for the verdict, unless the infrastructure spoilt the episode."""
        env = self._env
        opine, judges = self.setup.opine, isinstance(env, JudgingEnv)
        if self.stop is StopReason.CANCELLED or self._failure is not None or env is None:
            return
        if not (self.spec.task.checks or judges or opine):
            return
        left = max(0.0, self._deadline - self.setup.clock()) + self.limits.verdict_grace_s
        begin, at = self.setup.clock(), self.setup.now()
        self.setup.observer.phase(self.spec, "checking", self._device)
        with anyio.move_on_after(left) as scope:
            try:
                if isinstance(env, JudgingEnv):
                    with self._through(RewardError, "the verdict"):
                        self._verdict = await env.judge(self._answer, self._claimed)
                elif self.spec.task.checks:
                    await self._judge_state(env)
                if opine is not None:
                    await self._ask(opine)
            except RolloutError as e:
                self.fail(e)
        self._checked = at, self.setup.clock() - begin
        if scope.cancelled_caught:
            self.fail(self._unanswered())

    async def _ask(self, opine: Opine) -> None:
        """Ask for an opinion, which goes into the record, and is the verdict where nothing else gives one."""
        record = self._record
        seen = Seen(self.spec.task, record.turns, record.final, self._answer, record.pictures)
        with self._through(RewardError, "the judge"):
            opinion = await opine(seen)
        record.info[INFO] = opinion.model_dump(mode="json")
        self._verdict = self._verdict or opinion.verdict().model_copy(update={"claimed": self._claimed})

    async def _judge_state(self, env: Env) -> None:
        after: Mapping[str, Any] = {}
        if env.capabilities.state:
            with self._through(EnvError, "reading the state"):
                after = await env.state()
        with self._through(RewardError, "the verdict"):
            self._verdict = self.setup.judge(
                self.spec.task, self._before, after, self._answer, self._claimed, getattr(env, "volatile", ())
            )

    async def close(self) -> None:
        """Close the environment once, even under cancellation, for a bounded time."""
        env, self._env = self._env, None
        if env is None:
            return
        with anyio.move_on_after(self.limits.close_s, shield=True) as scope:
            try:
                await env.close()
            except Exception as e:
                self._leaked(f"{type(e).__name__}: {e}")
        if scope.cancelled_caught:
            self._leaked(f"no answer within {self.limits.close_s:g} s")

    def episode(self) -> Episode:
        """The record as it stands, scored."""
        assert self.stop is not None
        spec, record = self.spec, self._record
        asked = [t.sampled for t in record.turns if t.sampled is not None]
        # an oracle's turns come from no version of a policy
        first = next((sampled for sampled in asked if sampled.logprobs is not None), asked[0] if asked else None)
        trajectory = Trajectory(
            episode_id=spec.episode_id,
            run_id=spec.run_id,
            group_id=spec.group_id,
            attempt=spec.attempt,
            step=spec.step,
            purpose=spec.purpose,
            task_id=spec.task.task_id,
            goal=spec.task.goal,
            category=spec.task.category,
            difficulty=spec.task.difficulty,
            env=spec.task.env,
            backend=self.setup.backend,
            device=self._device,
            ready_s=self._ready_s,
            check_at=self._checked and self._checked[0],
            check_s=self._checked and self._checked[1],
            agent=self._agent.name if self._agent else "",
            policy=first.policy if first else "",
            policy_version=first.policy_version if first else 0,
            seed=spec.seed,
            turns=tuple(record.turns),
            final_screenshot=record.final,
            answer=self._answer,
            stop=self.stop,
            failure=self._failure,
            verdict=self._verdict,
            started_at=self._started_at,
            wall_s=self.setup.clock() - self._start,
            info=record.info,
        )
        try:
            with self._through(RewardError, "the reward function"):
                reward, parts = score(trajectory, self.setup.reward)
            update: dict[str, Any] = {"reward": reward, "reward_parts": parts}
        except RewardError as e:
            self.fail(e)
            update = {"stop": self.stop, "failure": self._failure}
        return Episode(trajectory.model_copy(update=update), record.pictures)

    # --- failures and limits ---------------------------------------------------------------------------------------

    @contextmanager
    def _through(self, error: type[RolloutError], name: str, expected_s: float = 0.0) -> Iterator[None]:
        """Give what the calls made inside raise to the boundary of ``error``, and know who is late if one is."""
        self._call = _Call(error, name, self.setup.clock(), expected_s)
        try:
            yield
        except (RolloutError, ConfigError, PrerequisiteError):
            raise
        except Exception as e:
            raise _wrapped(error, name, e) from e

    def _bound(self, until: float) -> None:
        """Abandon whatever is under way at ``until``, on the clock."""
        self._until = until
        self._scope.deadline = anyio.current_time() + until - self.setup.clock()

    def fail(self, error: RolloutError) -> None:
        """Make ``error`` the episode's failure, named after what caused it. The deadline stays the stop reason."""
        self._keep_undone("the call failed")
        self._failure = Failure(
            boundary=error.boundary,
            kind=type(error.__cause__ or error).__name__,
            message=loggable(str(error)),
            traceback=loggable("".join(traceback.format_exception(error))),
        )
        if self.stop is not StopReason.DEADLINE:
            self.stop = StopReason.FAILED

    def _overrun(self) -> None:
        """The call in flight was abandoned: by the limit of the turn (a failure) or by that of the episode.

        The episode's deadline is the policy's to keep, and scored, unless that single call used up more than half of
        the time: then it hung.
        """
        if self._until < self._deadline:
            self.fail(self._unanswered())
            return
        self.stop = StopReason.DEADLINE
        waited = self.setup.clock() - self._call.since - self._call.expected_s
        if waited > self.limits.deadline_s / 2:
            self.fail(self._unanswered())
        else:
            self._keep_undone("abandoned at the deadline")

    def _unanswered(self) -> RolloutError:
        call = self._call
        # An agent is pure computation around its sampler: if it takes for ever, the sampler does.
        error = SamplerError if call.error is AgentError else call.error
        return error(f"{call.name} did not return within {self.setup.clock() - call.since:.1f} s")

    def _keep_undone(self, why: str) -> None:
        if self._undone is None:
            return
        (decision, at, model_s), self._undone = self._undone, None
        env_s = self.setup.clock() - self._call.since
        self._record.interrupted_turn(decision, why, started_at=at, model_s=model_s, env_s=env_s)

    def cancelled(self) -> None:
        """Whoever asked for the episode doesn't want it any more."""
        self.stop = StopReason.CANCELLED
        self._keep_undone("cancelled")

    def _leaked(self, why: str) -> None:
        logger.warning("episode %s: closing the environment failed: %s", self.spec.episode_id, why)
        self._record.info["close_failed"] = why
