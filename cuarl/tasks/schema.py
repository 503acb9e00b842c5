"""JSON Schemas of task files and of ``suite.yaml``, for editors."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from cuarl.tasks.build import SYNONYMS
from cuarl.tasks.suites import Suite
from cuarl.tasks.task import Task

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def task_file_schema() -> dict[str, Any]:
    """Schema of a YAML or JSON task file (and of a line of a JSON-lines file).

    A task, a list, or ``tasks`` with a list.
    """
    schema = TypeAdapter(Task).json_schema(ref_template="#/$defs/{model}")
    definitions = schema.pop("$defs")
    description = schema["properties"]["description"]
    for synonym, field in SYNONYMS.items():
        schema["properties"][synonym] = {**description, "description": f"The same as `{field}`."}
    del schema["required"]  # an id is made of the goal, and the goal has several names
    schema["anyOf"] = [{"required": [name]} for name in ("description", *SYNONYMS)]
    one = {"anyOf": [{"$ref": "#/$defs/Task"}, {"type": "string", "description": "A goal alone."}]}
    several = {"type": "array", "items": one, "minItems": 1}
    wrapped = {"type": "object", "properties": {"tasks": several}, "required": ["tasks"], "additionalProperties": False}
    return {
        "$schema": DIALECT,
        "title": "cuarl task file",
        "anyOf": [*one["anyOf"], several, wrapped],
        "$defs": {**definitions, "Task": schema},
    }


def suite_schema() -> dict[str, Any]:
    """Schema of a ``suite.yaml``."""
    schema = Suite.model_json_schema()
    schema.pop("required", None)  # the name is the folder's
    return {"$schema": DIALECT, **schema}
