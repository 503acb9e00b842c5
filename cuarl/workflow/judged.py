"""A backend beside which a model judges."""

from __future__ import annotations

from dataclasses import dataclass, fields

from cuarl.config.schema import ExperimentConfig
from cuarl.env.backend import Backend
from cuarl.rollout.opinion import JudgeModel
from cuarl.rollout.reward import JUDGE
from cuarl.rollout.setup import Opine
from cuarl.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged(Backend):
    """As the backend that it stands for, with somebody to ask about each episode."""

    opine: Opine


def judge_model(base_url: str, model: str, screens: int, settings: Settings) -> JudgeModel:
    """The model that judges, with this machine's key for it."""
    key = settings.judge_api_key
    return JudgeModel(base_url, model, key.get_secret_value() if key else None, screens=screens)


def with_judge(made: Backend, config: ExperimentConfig, settings: Settings) -> Backend:
    """``made``, with the model that judges where the reward is its opinion."""
    if config.reward != JUDGE:
        return made
    assert config.judge_base_url is not None and config.judge_model is not None, "the configuration is checked"
    judge = judge_model(config.judge_base_url, config.judge_model, config.judge_screens, settings)

    async def close() -> None:
        try:
            await made.close()
        finally:
            await judge.close()

    return Judged(
        **{field.name: getattr(made, field.name) for field in fields(Backend)} | {"close": close}, opine=judge
    )
