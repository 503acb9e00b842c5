import json
from pathlib import Path

import pytest

from cuarl.agent import formats
from cuarl.errors import ConfigError


def test_a_format_has_a_name_for_each_kind_of_device() -> None:
    assert [formats.get("qwen3-vl", kind).name for kind in ("phone", "desktop")] == [
        "qwen3-vl-mobile", "qwen3-vl-computer",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["qwen3_vl", "Qwen3-VL", "qwen3vl"])
def test_an_unknown_format_is_refused_with_a_suggestion(name: str) -> None:
    with pytest.raises(ConfigError, match='did you mean "qwen3-vl"'):
        formats.get(name)


def test_system_prompts_are_constants_of_the_kind_of_device() -> None:
    assert set(formats.SYSTEM_PROMPTS) == {"phone", "desktop"}
    for kind, text in formats.SYSTEM_PROMPTS.items():
        assert formats.get("qwen3-vl", kind).system_prompt == text


@pytest.mark.parametrize("model", ["tiny", "Qwen/Qwen3-VL-8B-Instruct", "unsloth/Qwen3-VL-2B-Instruct"])
def test_the_format_of_a_known_family_is_found(model: str) -> None:
    assert formats.for_model(model) == "qwen3-vl"


def test_the_format_of_a_folder_is_told_by_its_settings(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen3_vl_moe"}))
    assert formats.for_model(str(tmp_path)) == "qwen3-vl"
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen2_5_vl"}))
    with pytest.raises(ConfigError, match="not known which format"):
        formats.for_model(str(tmp_path))


@pytest.mark.parametrize("model", ["Qwen/Qwen2.5-VL-7B-Instruct", "my-model"])
def test_a_format_is_never_guessed(model: str) -> None:
    with pytest.raises(ConfigError, match="not known which format") as caught:
        formats.for_model(model)
    assert caught.value.hint == "--renderer-name qwen3-vl"
