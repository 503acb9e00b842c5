"""Texts below fields are their descriptions, though no class reads them when it is made."""

from typing import Literal

import pytest
from pydantic import ConfigDict, Field, create_model

from cuarl.config.keys import keys
from cuarl.config.unions import UNIONS
from cuarl.descriptions import of_class
from cuarl.settings import Settings
from cuarl.types import Record


class Base(Record):
    kind: str
    """What it is,
    in two lines."""
    size: int = 0
    """How large."""
    bare: int = 0
    size_too: int = Field(0, alias="sizeToo")
    """How large in other words."""


class Below(Base):
    kind: Literal["below"] = "below"
    more: Base | None = None
    """What is in it."""


def test_texts_are_read_below_fields_of_a_class_and_its_bases():
    size = {"size": "How large.", "size_too": "How large in other words."}
    assert Base.descriptions() == {"kind": "What it is,\nin two lines.", **size}
    assert Below.descriptions() == {**size, "more": "What is in it."}, "a field said anew has no inherited meaning"


def test_a_class_inside_a_function_has_its_own_texts():
    class Base(Record):
        size: int = 0
        """How small."""

    assert Base.descriptions() == {"size": "How small."}


@pytest.mark.parametrize("record", [Base, Below])
def test_schemas_have_descriptions_where_pydantic_puts_them(record):
    class Plain(record):
        model_config = ConfigDict(json_schema_extra=None)

    texts = record.descriptions()
    fields = {
        name: (field.annotation, _described(field, texts.get(name))) for name, field in record.model_fields.items()
    }
    expected = create_model("Expected", __base__=Plain, **fields).model_json_schema()
    assert record.model_json_schema()["properties"] == expected["properties"]


def _described(field, text):
    field = field._copy()
    field.description = text
    return field


def test_a_class_whose_source_nobody_has_is_described_by_nothing():
    assert of_class(create_model("Made", __base__=Base)) == of_class(Base)
    made: dict[str, type] = {}
    exec("class Typed:\n    size: int = 0\n    'How large.'\n", {"__name__": "nowhere"}, made)
    assert of_class(made["Typed"]) == {}


def test_every_setting_and_every_key_has_a_description():
    assert set(of_class(Settings)) >= set(Settings.model_fields)
    assert [key.path for key in keys().values() if not key.description] == []


def test_an_option_of_an_algorithm_means_what_it_means_in_all_of_them():
    record = UNIONS["algorithm"].record("gigpo")
    assert record.descriptions()["anchor"].startswith("What makes two turns of a group the same state")
    assert record.model_json_schema()["properties"]["anchor"]["description"] == record.descriptions()["anchor"]
