"""Print a configuration so that it can be read, and read back."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from cuarl.config.load import Resolved
from cuarl.config.schema import PANELS, ExperimentConfig


def as_json(config: ExperimentConfig) -> str:
    """All fields as a JSON file that resolves to the same digest."""
    return json.dumps(config.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"


def as_yaml(resolved: Resolved, keys: Collection[str] | None = None) -> str:
    """The fields (or those in ``keys``) as a YAML file: panel by panel, each value with its source as a comment."""
    values = resolved.config.model_dump(mode="json")
    blocks = []
    for panel in PANELS:
        names = [name for name in panel.model_fields if keys is None or name in keys]
        if names:
            lines = [f"{name}: {_scalar(values[name])}" for name in names]
            width = min(48, max(map(len, lines)))
            rows = [f"{line:<{width}}  # {resolved.sources[name]}" for line, name in zip(lines, names, strict=True)]
            blocks.append("\n".join([f"# {panel.panel}", *rows]))
    return "\n\n".join(blocks) + "\n"


def _scalar(value: Any) -> str:
    # JSON is a subset of the YAML that is read back, and says the types plainly
    return json.dumps(value, ensure_ascii=False)
