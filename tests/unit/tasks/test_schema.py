from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cuarl.tasks.build import SYNONYMS
from cuarl.tasks.schema import suite_schema, task_file_schema
from cuarl.tasks.task import Task

SCHEMAS = Path(__file__).parents[3] / "docs" / "reference" / "schemas"


@pytest.mark.parametrize(
    ("file", "schema"), [("task-file.schema.json", task_file_schema()), ("suite.schema.json", suite_schema())]
)
def test_the_schemas_in_the_docs_are_fresh(file: str, schema: dict[str, Any]) -> None:
    assert json.loads((SCHEMAS / file).read_text()) == schema, f"cuarl tasks schema > docs/schemas/{file}"


def test_a_task_needs_its_goal_only_under_any_of_its_names() -> None:
    task = task_file_schema()["$defs"]["Task"]
    assert set(task["properties"]) == {*Task.model_fields, *SYNONYMS}
    assert task["anyOf"] == [{"required": [name]} for name in ("description", *SYNONYMS)]
    assert task["additionalProperties"] is False
    assert all(field.get("description") or field.get("title") for field in task["properties"].values())


def test_every_reference_leads_somewhere() -> None:
    schema = task_file_schema()
    references = {part.split('"')[0] for part in json.dumps(schema).split('"$ref": "#/$defs/')[1:]}
    assert references == set(schema["$defs"])
