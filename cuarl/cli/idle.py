"""Options that a command takes and a use of it could not honour: refused by name, so that none is silently ignored.

What depends on the experiment's fields alone is refused by ``cuarl.config.rules``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from cuarl.errors import ConfigError
from cuarl.train.launch import Launch
from cuarl.workflow.experiment import Experiment
from cuarl.workflow.targets import Target

PROMPTS = ("renderer_name", "history_images", "history_turns", "history_older", "max_prompt_tokens")
"""What of the experiment is about prompts alone."""
SAMPLING = ("load_checkpoint_path", "temperature", "eval_temperature", "top_p", "top_k", "max_tokens")
"""About answers."""
LOADED = ("load_checkpoint_path", "dtype", "quantization", "device")
"""About a model in this process."""
ENDPOINT = ("policy", "policy.base_url", "policy.served_model_name", "policy.rescore")
"""About a policy that is elsewhere."""
MODEL = ("model_name", "trust_remote_code", "dtype", "quantization", "device", *PROMPTS, *ENDPOINT)
"""About a policy, wherever it is."""


def given_flags(experiment: Experiment, fields: Iterable[str] | None = None) -> list[str]:
    """Flags on the command line that set one of ``fields`` (None: any field), as they were typed."""
    sources = experiment.resolved.sources
    return [s for name in (sources if fields is None else fields) if (s := sources.get(name, "")).startswith("-")]


def given_options(options: Mapping[str, object]) -> list[str]:
    """Those of a command's own options that were given: whose value is neither None nor False nor empty."""
    return [flag for flag, value in options.items() if value not in (None, False, [], ())]


def refuse(given: Sequence[str], why: str, hint: str = "leave it out") -> None:
    """Raise ConfigError for the first of ``given``, if there is one."""
    if given:
        raise ConfigError(f"{given[0]} has no effect {why}", hint=hint)


def check_agent(experiment: Experiment, agent: str, page: Mapping[str, object], *, assist: bool) -> None:
    """See that who acts in a rollout can honour the flags. Raises ConfigError.

    ``page`` are the options of the page on which a person acts, or corrects the policy (``assist``).
    """
    env, elsewhere = experiment.config.env, experiment.config.model_base_url
    if assist and (agent != "policy" or elsewhere is not None):
        who = "a policy that is elsewhere" if agent == "policy" else f"the agent {agent}"
        raise ConfigError(f"--assist has no effect on {who}", hint="leave it out, or use a policy in this process")
    if (agent != "policy" or assist) and not env.scripted:
        raise ConfigError(f"in env {env.type} only a policy can act", where=f"--agent {agent}", hint="--agent policy")
    if agent == "human" or assist:
        alone = ("max_concurrent_rollouts", "workers", *ENDPOINT)
        refuse(given_flags(experiment, alone), "on a person, who plays one episode after the other")
    else:
        refuse(given_options(page), f"on the agent {agent}", "leave it out, or use --agent human or --assist")
    if agent != "policy":
        worded = agent in ("demonstration", "human")
        unused = (*SAMPLING, *ENDPOINT) if worded else (*SAMPLING, *MODEL)
        refuse(given_flags(experiment, unused), f"on the agent {agent}", "leave it out, or use --agent policy")
    elif experiment.config.model_base_url is not None:
        refuse(given_flags(experiment, LOADED), "on a policy behind model_base_url, which loads its model itself")


def check_target(experiment: Experiment, target: Target) -> None:
    """See that what is evaluated can honour the flags. Raises ConfigError."""
    if target.kind == "scripted":
        refuse(given_flags(experiment, (*SAMPLING, *MODEL)), f"on {target.name}, which asks no model")
    elif target.kind == "endpoint":
        refuse(given_flags(experiment, LOADED), "on an endpoint, which loads its model itself")
    elif target.model is not None and target.model != experiment.config.model_name:
        refuse(given_flags(experiment, ("model_name",)), f"on a checkpoint, whose base is {target.model}")


def check_served(experiment: Experiment, target: Target) -> None:
    """See that what is served can honour the flags. Raises ConfigError."""
    if target.kind in ("endpoint", "tinker"):
        refuse(
            given_flags(experiment, ("dtype", "quantization", "device")),
            "on a policy that is elsewhere, which loads its model itself",
        )
    elif target.model is not None and target.model != experiment.config.model_name:
        refuse(given_flags(experiment, ("model_name",)), f"on a checkpoint, whose base is {target.model}")


def check_launch(launch: Launch, accelerate: str | None, world_size: str | None, *, probe: bool = False) -> None:
    """See that several processes are started where their number or their launcher is given. Raises ConfigError.

    ``accelerate`` is the option, ``world_size`` the number of processes, as text, of which this is one already; None
    for none.
    """
    flag = "--nodes" if launch.node.count > 1 else "--processes"
    if launch.world > 1 and world_size not in (None, str(launch.world)):
        raise ConfigError(
            f"{launch.world} processes are asked for in one of {world_size} that a launcher has started",
            where=flag,
            hint=f"leave {flag} out",
        )
    if launch.world > 1 and probe:
        raise ConfigError(f"{flag} has no effect on --probe, which makes a step in one process", hint="leave it out")
    if accelerate is not None and (launch.world == 1 or world_size is not None):
        raise ConfigError(
            "--accelerate has no effect without several processes to start",
            where=f"--accelerate {accelerate}",
            hint="--processes 2, or leave --accelerate out",
        )
