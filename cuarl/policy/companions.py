"""Writing what lies beside a model's weights: tokenizers and processors of transformers."""

from __future__ import annotations

import os
import re
from types import TracebackType
from typing import Any

_OS_ERROR = re.compile(r"\(os error (\d+)\)")


def write(folder: str, *companions: Any) -> None:
    """Save each into ``folder``. Raises OSError, also where tokenizers raises a bare Exception that says so."""
    with _OSErrors(folder):
        for companion in companions:
            companion.save_pretrained(folder)


class _OSErrors:
    """An error of the system that tokenizers hands on as a bare Exception becomes an OSError; no other changes."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        """Nothing is done yet."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Raise the OSError instead."""
        number = _OS_ERROR.search(str(error)) if kind is Exception else None
        if number is not None:
            raise OSError(int(number[1]), os.strerror(int(number[1])), self._folder) from error
