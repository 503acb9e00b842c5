"""Print a configuration so that it can be read, and read back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from cuarl.config.keys import paths, value_of
from cuarl.config.load import Resolved
from cuarl.config.schema import PANELS, ExperimentConfig
from cuarl.config.unions import UNIONS


def as_json(config: ExperimentConfig) -> str:
    """All fields as a JSON file that resolves to the same digest."""
    return json.dumps(config.model_dump(mode="json"), indent=2, ensure_ascii=False) + "\n"


def as_yaml(resolved: Resolved) -> str:
    """All fields as a YAML file: panel by panel, each value with its source as a comment."""
    config = resolved.config
    blocks = []
    for panel in PANELS:
        lines = [
            line
            for path in paths(config)
            if path.partition(".")[0] in panel.model_fields
            for line in _lines(path, config)
        ]
        width = min(48, max((len(line) for line, _ in lines), default=0))
        rows = [f"{line:<{width}}  # {resolved.sources[path]}" if path else line for line, path in lines]
        blocks += ["\n".join([f"# {panel.panel}", *rows])] if rows else []
    return "\n\n".join(blocks) + "\n"


def _lines(path: str, config: ExperimentConfig) -> Iterator[tuple[str, str]]:
    """The lines of a value, each with its path; none where it has no value itself."""
    name, _, inner = path.partition(".")
    if path in UNIONS:
        yield f"{name}:", ""
        inner = "type"
    value = value_of(config, path)
    yield (f"  {inner}" if inner else name) + f": {_scalar(value)}", path


def _scalar(value: Any) -> str:
    # JSON is a subset of the YAML that is read back, and says the types plainly
    return json.dumps(value, ensure_ascii=False)


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a configuration file, with the records of all types that come with cuarl."""
    made = ExperimentConfig.model_json_schema(mode="validation")
    for name, union in UNIONS.items():
        records = [union.record(type_) for type_ in union.types()]
        shapes = [{"$ref": f"#/$defs/{name}.{type_}"} for type_ in union.types()]
        of_type = dict(zip(union.types(), (record.model_json_schema() for record in records), strict=True))
        made["$defs"] = {**made.get("$defs", {}), **{f"{name}.{type_}": one for type_, one in of_type.items()}}
        made["properties"][name] = {
            "anyOf": [{"type": "string", "examples": list(union.types())}, *shapes],
            "default": union.default,
            "description": made["properties"][name].get("description", ""),
        }
    return made
