"""Exports on a model hub, as data sets.

The hub is the one that ``HF_ENDPOINT`` names, the token ``HF_TOKEN`` or that of a login.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cuarl.errors import ConfigError, CuarlError, MissingSecret

_OURS = ["*.parquet", "*.jsonl", "images/*"]
"""What an earlier push has left and this one does not have is deleted: a second half of other episodes would be read,
too."""


def check_hub(name: str) -> None:
    """See that a push can be begun, before anything is exported.

    Raises ConfigError for a name that is none, MissingSecret.
    """
    from huggingface_hub import get_token
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils._validators import validate_repo_id

    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise ConfigError(
            f'"{name}" is no name of a data set', where="--push-to-hub", hint="--push-to-hub USER/NAME"
        ) from error
    if not get_token():
        raise MissingSecret(
            "a hub takes data sets only with a token", where="HF_TOKEN", hint="export HF_TOKEN=hf_… (or: hf auth login)"
        )


def push(folder: Path, name: str, *, public: bool = False) -> str:
    """Make the data set ``name``, private unless ``public``, of a folder's files; gives its address.

    One that is there already gets another commit, and is seen by whom it was. Raises CuarlError; the folder stays as it
    is.
    """
    from huggingface_hub import HfApi

    api = HfApi(library_name="cuarl")
    with _reported(f"hf upload {name} {folder} --repo-type dataset"):
        made = api.create_repo(name, repo_type="dataset", private=not public, exist_ok=True)
        api.upload_folder(
            repo_id=made.repo_id,
            repo_type="dataset",
            folder_path=folder,
            delete_patterns=_OURS,
            commit_message="Episodes, exported with cuarl",
        )
    return str(made)


@contextmanager
def _reported(again: str) -> Iterator[None]:
    from huggingface_hub import errors

    away: Any = vars(errors)["HTTPError"]  # of the HTTP client that it has, which is another one in later releases
    try:
        yield
    except (away, OSError, ValueError) as error:
        cause = str(error).strip().splitlines()
        raise CuarlError(
            f"the hub didn't take the data set: {cause[0] if cause else type(error).__name__}", hint=again
        ) from error
