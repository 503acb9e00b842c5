import json

import pytest

from cuarl.config.load import resolve
from cuarl.config.show import as_json, as_yaml
from cuarl.errors import ConfigError


@pytest.fixture
def write(tmp_path):
    def write(name, text):
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return path

    return write


def error_of(**arguments):
    with pytest.raises(ConfigError) as caught:
        resolve(**arguments)
    return caught.value


def test_layers_win_in_the_documented_order(write):
    first = write("a.yaml", "lora_rank: 4\ngroup_size: 4\nseed: 4\ntemperature: 0.4\n")
    second = write("b.toml", "group_size = 5\nseed = 5\ntemperature = 0.5\n")
    found = resolve(
        preset="qwen3-vl-lora", files=[first, second], flags={"seed": 6, "temperature": 0.6}, sets=["temperature=0.7"]
    )
    config = found.config
    assert (config.max_tokens, config.lora_rank, config.group_size, config.seed, config.temperature) == (
        512,
        4,
        5,
        6,
        0.7,
    )
    assert found.sources["top_p"] == "default"
    assert found.sources["max_tokens"] == "preset qwen3-vl-lora"
    assert found.sources["lora_rank"] == f"{first}, line 1"
    assert found.sources["group_size"] == f"{second}, line 1"
    assert found.sources["seed"] == "--seed"
    assert found.sources["temperature"] == "-s temperature"
    assert found.files == (first, second)


def test_lists_are_replaced(write):
    path = write("a.yaml", "tasks: [a, b]")
    assert resolve(files=[path], flags={"tasks": ["c"]}).config.tasks == ("c",)


def test_the_environment_does_not_enter(monkeypatch):
    monkeypatch.setenv("GROUP_SIZE", "99")
    monkeypatch.setenv("CUARL_GROUP_SIZE", "99")
    assert resolve().config.group_size == 16


def test_unknown_keys_are_listed_with_place_and_suggestion(write):
    path = write("my.yaml", "# mine\nlearning_rat: 1\n\ngroup-size: 2\n")
    error = error_of(files=[path], sets=["zzz=1"])
    assert f'"learning_rat" (did you mean "learning_rate"?) at {path}, line 2' in error.what
    assert f'"group-size" (did you mean "group_size"?) at {path}, line 4' in error.what
    assert '"zzz" at -s zzz' in error.what
    assert error.exit_code == 2


def test_one_unknown_key_makes_three_short_lines(write):
    path = write("my.yaml", "optim:\n  lr: 1\n")
    assert str(error_of(files=[path])).splitlines() == [
        'unknown key "optim"',
        f"  at: {path}, line 1",
        "  fix: cuarl config show --keys all",
    ]


def test_a_wrong_value_names_key_value_and_place(write):
    path = write("my.json", '{\n  "seed": 1,\n  "group_size": 0\n}')
    error = error_of(files=[path])
    assert error.what == "group_size must be greater than 0 (got 0)"
    assert error.where == f"{path}, line 3"


def test_all_wrong_values_are_listed_at_once():
    error = error_of(flags={"group_size": 0, "clutter": 2, "profile": "wide"})
    assert error.what.startswith("3 values are wrong")
    assert "env.profile must be 'small', 'phone' or 'tall' (got 'wide') at --profile" in error.what


def test_an_impossible_combination_says_why():
    found = error_of(flags={"max_steps_off_policy": 2, "dynamic_sampling_rounds": 1})
    assert "has no place for" in found.what


def test_unknown_presets_are_suggested():
    assert 'did you mean "qwen3-vl-lora"?' in error_of(preset="qwen3-vl-lara").what


@pytest.mark.parametrize("text", ["group_size", "=3", ""])
def test_sets_must_be_assignments(text):
    assert "is not key=value" in error_of(sets=[text]).what


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("learning_rate=1e-5", "learning_rate", 1e-5),
        ("learning_rate=null", "learning_rate", None),
        ("use_lora=true", "use_lora", True),
        ("tasks=[a, b]", "tasks", ("a", "b")),
        ('tasks={"source_type": "ids"}', "tasks", ('{"source_type": "ids"}',)),
        ("model_name=012", "model_name", "012"),
        ("load_checkpoint_path=runs/a=b", "load_checkpoint_path", "runs/a=b"),
        ("model_name=true", "model_name", "true"),
    ],
)
def test_sets_are_read_as_yaml_but_text_stays_text(text, name, value):
    assert getattr(resolve(sets=[text]).config, name) == value


@pytest.mark.parametrize("preset", [None, "qwen3-vl-lora", "qwen3-vl-full", "cua-rl"])
def test_printed_configurations_read_back_to_the_same_digest(write, preset):
    found = resolve(preset=preset, sets=['tasks=[{"limit": 3}, "no"]', "seed=7", "algorithm.discount=1"])
    for name, text in {"back.json": as_json(found.config), "back.yaml": as_yaml(found)}.items():
        assert resolve(files=[write(name, text)]).config.digest == found.config.digest


def test_printed_yaml_names_every_source(write):
    path = write("a.yaml", "seed: 3\n")
    text = as_yaml(resolve(files=[path], flags={"group_size": 4}))
    lines = {line.split(":")[0]: line for line in text.splitlines() if ":" in line}
    assert lines["seed"].endswith(f"# {path}, line 1")
    assert lines["group_size"].endswith("# --group-size")
    assert lines["top_p"].endswith("# default")


def test_printed_json_is_strict():
    def refuse(name):
        raise AssertionError(name)

    assert json.loads(as_json(resolve().config), parse_constant=refuse)["learning_rate"] is None


def test_a_preset_is_played_in_another_environment_without_its_options_for_its_own() -> None:
    found = resolve(preset="qwen3-vl-lora", flags={"env": "adb"})
    assert found.config.env.type == "adb" and found.config.history_images == 2
    assert resolve(preset="qwen3-vl-lora").config.env.profile == "phone"  # type: ignore[attr-defined]
    said = error_of(preset="qwen3-vl-lora", flags={"env": "adb", "profile": "tall"}).what
    assert "env.profile has no effect with env adb" in said
