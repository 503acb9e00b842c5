"""Machine facts and secrets: command line > environment > ``.env`` > default.

``.env`` is searched from the working directory upwards; relative paths in it are meant from its own folder. A secret
may also be given as ``NAME_FILE``, the path of a file that holds it. Experiment fields are not here: they have no
environment layer (see ``cuarl.config``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from pydantic import AliasChoices, Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from cuarl import safe_text
from cuarl.errors import ConfigError, MissingSecret, PrerequisiteError

SECRETS = (
    "DATABASE_URL", "POSTGRES_PASSWORD", "OPENAI_API_KEY", "TINKER_API_KEY", "GBOX_API_KEY", "GYM_API_KEY",
    "GBOX_MINI_AGENT_API_KEY", "OPENENV_TOKEN", "HF_TOKEN", "CUARL_SERVE_TOKEN", "KUBE_TOKEN", "CUARL_SESSION_TOKEN",
    "WANDB_API_KEY", "MONITOR_PROJECT_TOKEN", "JUDGE_API_KEY", "CUARL_BROWSER_URL",
)  # fmt: skip
"""Variables that may also be given as ``NAME_FILE``."""


class _Environment(EnvSettingsSource):
    """The environment over ``.env``, with ``NAME_FILE`` read."""

    def __init__(self, settings: type[BaseSettings], dotenv: Path | None) -> None:
        self._dotenv = dotenv
        super().__init__(settings)

    def _load_env_vars(self) -> Mapping[str, str | None]:
        return {name.lower(): value for name, value in environment(self._dotenv).items()}


class Settings(BaseSettings):
    """What this machine offers. The variable of each field is its name with ``CUARL_`` in front, or the one given."""

    model_config = SettingsConfigDict(
        env_prefix="CUARL_",
        extra="ignore",
        frozen=True,
        populate_by_name=True,
        env_ignore_empty=True,
    )

    database_url: SecretStr | None = Field(None, validation_alias="DATABASE_URL")
    """Store; unset means the POSTGRES_* parts if there is a host, else a SQLite file in runs_dir."""
    postgres_host: str | None = Field(None, validation_alias="POSTGRES_HOST")
    """Host of the PostgreSQL server."""
    postgres_port: int = Field(5432, validation_alias="POSTGRES_PORT")
    """Its port."""
    postgres_db: str = Field("cuarl", validation_alias="POSTGRES_DB")
    """Its database."""
    postgres_user: str | None = Field(None, validation_alias="POSTGRES_USER")
    """Its user."""
    postgres_password: SecretStr | None = Field(None, validation_alias="POSTGRES_PASSWORD")
    """The user's password."""
    runs_dir: Path = Path("runs")
    """Folder of the run directories."""
    sessions_dir: Path | None = None
    """Where open browsers, displays and boxes are noted; unset means in the user's state folder ($XDG_STATE_HOME)."""
    browser: Path | None = None
    """Chromium or Chrome to run; unset means the first of chromium-headless-shell, chromium, google-chrome on the
    PATH."""
    browser_url: SecretStr | None = None
    """A browser that runs already, to use in its place: http://HOST:PORT of Chrome's remote debugging, or the ws://… of
    a Playwright server."""
    adb_host: str = Field("127.0.0.1", validation_alias="ANDROID_ADB_SERVER_HOST")
    """Host of the adb server."""
    adb_port: int = Field(5037, validation_alias="ANDROID_ADB_SERVER_PORT")
    """Its port."""
    adb_servers: str | None = None
    """Several adb servers, whose devices a run uses together: HOST:PORT with commas between; unset means the one
    above."""
    adb_serials: str | None = Field(None, validation_alias="ANDROID_SERIAL")
    """Devices to use, by serial number, with commas between (SERIAL@HOST:PORT where several servers have that number);
    unset means all that are ready and in use by no other run."""
    blobs_url: str | None = None
    """Where screenshots go: a folder or an fsspec URL; unset means beside the database, or in runs_dir."""
    tasks_dir: Path | None = None
    """Folder of further task suites."""
    model_base_url: str | None = Field(None, validation_alias="OPENAI_BASE_URL")
    """Base URL of an OpenAI-compatible server that the policy is sampled from."""
    openai_api_key: SecretStr | None = Field(None, validation_alias="OPENAI_API_KEY")
    """Key for that server."""
    judge_api_key: SecretStr | None = Field(None, validation_alias="JUDGE_API_KEY")
    """Key for the server of the model that judges (``reward: judge``)."""
    serve_token: SecretStr | None = None
    """Key that clients of ``cuarl serve`` must send; needed to listen beyond this machine."""
    monitor_token: SecretStr | None = None
    """Token that whoever opens the monitor must give; needed to listen beyond this machine."""
    price_device_hour: float | None = Field(None, ge=0, allow_inf_nan=False)
    """What an hour of one device costs (phone, desktop, browser), in any currency: for the ledger of a run's costs."""
    price_machine_hour: float | None = Field(None, ge=0, allow_inf_nan=False)
    """What an hour of the machine that trains costs."""
    price_million_tokens_in: float | None = Field(None, ge=0, allow_inf_nan=False)
    """What a million tokens of prompts cost, where a server is paid by them."""
    price_million_tokens_out: float | None = Field(None, ge=0, allow_inf_nan=False)
    """What a million sampled tokens cost."""
    monitor_base_url: str | None = Field(None, validation_alias="MONITOR_BASE_URL")
    """Training monitor elsewhere that trainings report to: its address, with its path prefix."""
    project_id: str | None = Field(None, validation_alias=AliasChoices("MONITOR_PROJECT_ID", "PROJECT_ID"))
    """Project there."""
    project_token: SecretStr | None = Field(
        None, validation_alias=AliasChoices("MONITOR_PROJECT_TOKEN", "PROJECT_TOKEN")
    )
    """Token of that project."""
    tinker_api_key: SecretStr | None = Field(None, validation_alias="TINKER_API_KEY")
    """Key for Tinker."""
    tinker_base_url: str | None = Field(None, validation_alias="TINKER_BASE_URL")
    """Base URL of Tinker, or of a server that speaks its protocol; unset means the public service."""
    gbox_api_key: SecretStr | None = Field(None, validation_alias="GBOX_API_KEY")
    """Key for GBox; those of several accounts, whose boxes a run uses together, with commas between."""
    gbox_base_url: str = Field(
        "https://gbox.ai/api/v1", validation_alias=AliasChoices("GBOX_BASE_URL", "GBOX_CLIENT_BASE_URL")
    )
    """Base URL of GBox, or of a server that speaks its protocol."""
    gym_base_url: str = Field("http://localhost:5010", validation_alias="GYM_BASE_URL")
    """Base URL of a gym server."""
    gym_api_key: SecretStr | None = Field(None, validation_alias="GYM_API_KEY")
    """Key that the gym server asks for as a bearer token; unset sends none."""
    mini_agent_base_url: str = Field("http://localhost:3000", validation_alias="GBOX_MINI_AGENT_BASE_URL")
    """Base URL of gbox-mini-agent."""
    mini_agent_api_key: SecretStr | None = Field(None, validation_alias="GBOX_MINI_AGENT_API_KEY")
    """Key that gbox-mini-agent asks for as a bearer token; unset sends none."""
    kubeconfig: str | None = Field(None, validation_alias="KUBECONFIG")
    """Kubeconfig of the cluster that sessions run in, or several with colons between; unset means ~/.kube/config, or
    the account of the pod that cuarl runs in."""
    kube_context: str | None = None
    """Context of it; unset means the current one."""
    kube_api_url: str | None = Field(None, validation_alias="KUBE_API_URL")
    """Address of a Kubernetes API server, instead of a kubeconfig."""
    kube_token: SecretStr | None = Field(None, validation_alias="KUBE_TOKEN")
    """Bearer token for it, or instead of the kubeconfig's."""
    kube_ca_file: Path | None = Field(None, validation_alias="KUBE_CA_FILE")
    """Certificate to trust at that address; unset means those that this machine trusts."""
    pods_proxy_url: str | None = None
    """Proxy that leads to the sessions below /proxy/ID; unset means the API server's own."""
    session_token: SecretStr | None = None
    """Token that clients of ``cuarl sessions serve`` must send; pods are given one each."""
    openenv_token: SecretStr | None = Field(None, validation_alias="OPENENV_TOKEN")
    """Token that an OpenEnv server asks for as a bearer token; unset sends none."""
    hf_token: SecretStr | None = Field(None, validation_alias="HF_TOKEN")
    """Token for model hubs."""
    wandb_api_key: SecretStr | None = Field(None, validation_alias="WANDB_API_KEY")
    """Key for Weights & Biases (``--track wandb``); unset means its own login, or WANDB_MODE=offline."""
    grace_seconds: float = Field(30.0, gt=0, allow_inf_nan=False)
    """How long after SIGTERM, SIGINT or SIGHUP training may take to save and end: what the system waits before it
    kills."""
    rendezvous_seconds: float = Field(300.0, gt=0, allow_inf_nan=False)
    """How long the nodes of a training wait for each other to come (``--nodes``)."""
    log_level: str | None = None
    """Least level that is logged to stderr."""

    PATHS: ClassVar[tuple[str, ...]] = (
        "CUARL_RUNS_DIR",
        "CUARL_TASKS_DIR",
        "CUARL_SESSIONS_DIR",
        "CUARL_BROWSER",
        "KUBE_CA_FILE",
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The command line, then the environment (which has ``.env`` below it)."""
        assert isinstance(dotenv_settings, DotEnvSettingsSource)
        dotenv = dotenv_settings.env_file
        return init_settings, _Environment(settings_cls, dotenv if isinstance(dotenv, Path) else None)

    def tell_hub(self) -> None:
        """Put the hub's token where its client looks.

        It may stand in ``.env`` or in a file, and the environment wins.
        """
        if self.hf_token:
            os.environ.setdefault("HF_TOKEN", self.hf_token.get_secret_value())

    def tell_trackers(self) -> None:
        """Put the keys of trackers where they look, in the same way."""
        if self.wandb_api_key:
            os.environ.setdefault("WANDB_API_KEY", self.wandb_api_key.get_secret_value())

    @classmethod
    def load(cls, *, env_file: Path | None = None, **flags: Any) -> Settings:
        """Read everything, ``flags`` on top, and have the secrets masked in all output from here on.

        Raises ConfigError for a value that can't be read and PrerequisiteError for a file that is not there.
        """
        if env_file is not None and not env_file.is_file():
            raise PrerequisiteError("the file of environment variables is not there", where=str(env_file))
        try:
            settings = cls(_env_file=env_file or find_dotenv(), **flags)
        except ValidationError as error:
            # the input may be a secret, so it is not repeated
            wrong = "; ".join(f"{detail['loc'][0]}: {detail['msg']}" for detail in error.errors())
            raise ConfigError(f"wrong setting: {wrong}", where="the environment or .env") from None
        safe_text.remember(settings.secrets())
        return settings

    @classmethod
    def variables(cls, name: str) -> tuple[str, ...]:
        """The variables that set a field, the first one before the others."""
        alias = cls.model_fields[name].validation_alias
        if isinstance(alias, AliasChoices):
            return tuple(str(one) for one in alias.choices)
        return (str(alias or f"CUARL_{name.upper()}"),)

    @property
    def db_url(self) -> str:
        """The database to use. It may hold a password: show it through ``safe_text.masked`` only."""
        if self.database_url:
            return self.database_url.get_secret_value()
        if not self.postgres_host:
            return f"sqlite:///{self.runs_dir / 'cuarl.db'}"
        user = quote(self.postgres_user or "", safe="")
        password = quote(self.postgres_password.get_secret_value(), safe="") if self.postgres_password else ""
        login = f"{user}:{password}@" if password else f"{user}@" if user else ""
        return f"postgresql://{login}{self.postgres_host}:{self.postgres_port}/{quote(self.postgres_db, safe='')}"

    @property
    def sessions_folder(self) -> Path:
        """The folder of the ledger of sessions. It is one for all runs, so that a sweep finds those of every run."""
        state = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
        return self.sessions_dir or Path(state).expanduser() / "cuarl" / "sessions"

    @property
    def adb_places(self) -> list[tuple[str, int]]:
        """Host and port of each adb server. Raises ConfigError for what is none."""
        if self.adb_servers is None:
            return [(self.adb_host, self.adb_port)]
        found = []
        for text in dict.fromkeys(part.strip() for part in self.adb_servers.split(",")):
            host, _, port = text.rpartition(":")
            if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
                raise ConfigError(
                    f'"{text}" is no adb server',
                    where="CUARL_ADB_SERVERS",
                    hint="export CUARL_ADB_SERVERS=127.0.0.1:5037,lab:5037",
                )
            found.append((host, int(port)))
        return found

    @property
    def gbox_keys(self) -> list[str]:
        """The key of each account of GBox."""
        text = self.gbox_api_key.get_secret_value() if self.gbox_api_key else ""
        return list(dict.fromkeys(key.strip() for key in text.split(",") if key.strip()))

    def secrets(self) -> list[str]:
        """All secret values, passwords inside URLs included."""
        values = [getattr(self, name) for name in type(self).model_fields]
        secret = [value.get_secret_value() for value in values if isinstance(value, SecretStr)]
        browser = self.browser_url.get_secret_value() if self.browser_url else None
        urls = [text for text in (self.db_url, self.blobs_url, self.model_base_url, browser) if text]
        # a database URL as a whole is no secret: its host and name help in messages
        keys = [value for value in secret if "://" not in value]
        return [*keys, *self.gbox_keys, *(password for url in urls for password in safe_text.url_passwords(url))]

    def require(self, name: str) -> str:
        """The value of a secret field. Raises MissingSecret that names its variable."""
        value = getattr(self, name)
        if value is None:
            variable = self.variables(name)[0]
            raise MissingSecret(f"{variable} is not set", hint=f"export {variable}=…, or put it into .env")
        return str(value.get_secret_value())


def find_dotenv(start: Path | None = None) -> Path | None:
    """The nearest ``.env`` from ``start`` (the working directory) upwards."""
    folder = (start or Path.cwd()).resolve()
    return next((path for parent in (folder, *folder.parents) if (path := parent / ".env").is_file()), None)


def environment(dotenv: Path | None) -> dict[str, str]:
    """The variables that hold: those of the environment over those of ``dotenv``, ``NAME_FILE`` read in both."""
    merged: dict[str, str] = {}
    if dotenv is not None:
        from dotenv import dotenv_values

        values = {name: value for name, value in dotenv_values(dotenv).items() if value is not None}
        merged |= _with_files(_rebased(values, dotenv.parent))
    return merged | _with_files(os.environ)


def _rebased(values: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Relative paths of a ``.env``, meant from its folder."""
    found = dict(values)
    for name, value in values.items():
        if name in Settings.PATHS or (name.removesuffix("_FILE") in SECRETS and name.endswith("_FILE")):
            found[name] = str(folder / Path(value).expanduser())
        elif name == "DATABASE_URL" and value.startswith("sqlite:///") and not value.startswith("sqlite:////"):
            found[name] = f"sqlite:///{folder / value.removeprefix('sqlite:///')}"
    return found


def _with_files(values: Mapping[str, str]) -> dict[str, str]:
    found = dict(values)
    for name in SECRETS:
        path = values.get(f"{name}_FILE")
        if path and not values.get(name):
            try:
                found[name] = Path(path).expanduser().read_text(encoding="utf-8").strip()
            except OSError as error:
                raise PrerequisiteError(
                    f"can't read the secret: {error.strerror}", where=f"{name}_FILE={path}"
                ) from error
    return found
