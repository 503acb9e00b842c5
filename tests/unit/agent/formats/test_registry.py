import json
from pathlib import Path

import pytest

from cuarl.agent import formats
from cuarl.errors import ConfigError


def test_a_format_has_a_name_for_each_kind_of_device() -> None:
    assert [formats.get("qwen3-vl", kind).name for kind in ("phone", "desktop")] == [
        "qwen3-vl-mobile",
        "qwen3-vl-computer",
    ]


@pytest.mark.parametrize("name", ["qwen3_vl", "Qwen3-VL", "qwen3vl"])
def test_an_unknown_format_is_refused_with_a_suggestion(name: str) -> None:
    with pytest.raises(ConfigError, match='did you mean "qwen3-vl"'):
        formats.get(name)


def test_system_prompts_are_constants_of_the_kind_of_device() -> None:
    assert set(formats.SYSTEM_PROMPTS) == {"phone", "desktop"}
    for kind, text in formats.SYSTEM_PROMPTS.items():
        assert formats.get("qwen3-vl", kind).system_prompt == text


KNOWN = {
    "tiny": "qwen3-vl", "Qwen/Qwen3-VL-8B-Instruct": "qwen3-vl", "unsloth/Qwen3-VL-2B-Instruct": "qwen3-vl",
    "Qwen/Qwen2.5-VL-7B-Instruct": "qwen2.5-vl", "ByteDance-Seed/UI-TARS-1.5-7B": "ui-tars-1.5",
    "bytedance-research/UI-TARS-7B-DPO": "ui-tars-1.0", "ui_tars_1.5": "ui-tars-1.5", "computer-use-preview": "openai",
    "claude-sonnet-4-5": "anthropic", "anthropic/claude-3-7-sonnet-latest": "anthropic", "gemini-3.5-flash": "gemini",
}  # fmt: skip


@pytest.mark.parametrize(("model", "name"), KNOWN.items())
def test_the_format_of_a_known_family_is_found(model: str, name: str) -> None:
    assert formats.for_model(model) == name


def test_the_format_of_a_folder_is_told_by_its_settings(tmp_path: Path) -> None:
    for model_type, name in (("qwen3_vl_moe", "qwen3-vl"), ("qwen2_5_vl", "qwen2.5-vl")):
        (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
        assert formats.for_model(str(tmp_path)) == name
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "qwen2_vl"}))
    with pytest.raises(ConfigError, match="not known which format"):
        formats.for_model(str(tmp_path))


def test_a_folders_name_goes_before_its_settings_which_are_those_of_its_base(tmp_path: Path) -> None:
    for folder, name in (("UI-TARS-1.5-7B", "ui-tars-1.5"), ("UI-TARS-7B-SFT", "ui-tars-1.0")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "config.json").write_text(json.dumps({"model_type": "qwen2_5_vl"}))
        assert formats.for_model(str(tmp_path / folder)) == name
    (tmp_path / "UI-TARS-2").mkdir()
    (tmp_path / "UI-TARS-2" / "config.json").write_text(json.dumps({"model_type": "qwen2_5_vl"}))
    with pytest.raises(ConfigError):
        formats.for_model(str(tmp_path / "UI-TARS-2"))


@pytest.mark.parametrize("model", ["Qwen/Qwen2-VL-7B-Instruct", "my-model", "UI-TARS-2", "gpt-9", "gemini-2.5-pro"])
def test_a_format_is_never_guessed_and_any_model_can_be_asked_for_json(model: str) -> None:
    with pytest.raises(ConfigError, match="not known which format") as caught:
        formats.for_model(model)
    assert caught.value.hint == "--renderer-name json"
