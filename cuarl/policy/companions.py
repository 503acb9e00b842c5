"""Writing what lies beside a model's weights: tokenizers and processors of transformers."""

from __future__ import annotations

import os
import re
from typing import Any

_OS_ERROR = re.compile(r"\(os error (\d+)\)")


def write(folder: str, *companions: Any) -> None:
    """Save each into ``folder``. Raises OSError, also where tokenizers raises a bare Exception that says so."""
    for companion in companions:
        try:
            companion.save_pretrained(folder)
        except Exception as error:
            number = _OS_ERROR.search(str(error))
            if type(error) is not Exception or number is None:
                raise
            raise OSError(int(number[1]), os.strerror(int(number[1])), folder) from error
