from pathlib import Path

import pytest

from cuarl.config.files import parse_value, read
from cuarl.config.load import resolve
from cuarl.errors import ConfigError

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def write(tmp_path):
    def write(name, data):
        path = tmp_path / name
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
        return path

    return write


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-5", 1e-5), ("1E5", 1e5), ("-.5", -0.5), ("5.", 5.0), ("012", 12), ("+3", 3), ("10:30", "10:30"),
        ("no", "no"), ("on", "on"), ("off", "off"), ("y", "y"), ("true", True), ("False", False), ("~", None),
        ("null", None), ("", None), ("1.10", 1.1), ("2026-01-05", "2026-01-05"), ("0x1f", "0x1f"), ("1_000", "1_000"),
        ("'true'", "true"), ("[1, a]", [1, "a"]), ("{a: 1}", {"a": 1}), ("a: b: c", "a: b: c"), ("1e", "1e"),
        (".", "."), ("e5", "e5"),
    ],
)  # fmt: skip
def test_scalars_follow_yaml_1_2(text, value):
    assert parse_value(text) == value
    assert type(parse_value(text)) is type(value)


def test_the_three_formats_agree(write):
    texts = {
        "a.yaml": "use_lora: true\nlearning_rate: 1e-5\ntasks: [a, b]\nmodel_name: 'no'\n",
        "a.json": '{"use_lora": true, "learning_rate": 1e-5, "tasks": ["a", "b"], "model_name": "no"}',
        "a.toml": 'use_lora = true\nlearning_rate = 1e-5\ntasks = ["a", "b"]\nmodel_name = "no"\n',
    }
    values = [read(write(name, text)).values for name, text in texts.items()]
    assert values[0] == values[1] == values[2]


def test_marks_and_windows_line_ends_are_understood(write):
    file = read(write("a.yaml", b"\xef\xbb\xbfseed: 1\r\n\r\ngroup_size: 2\r\n"))
    assert file.values == {"seed": 1, "group_size": 2}
    assert file.where("group_size").endswith("a.yaml, line 3")


def test_an_empty_file_holds_nothing(write):
    assert read(write("a.yaml", "# only a comment\n")).values == {}


@pytest.mark.parametrize(
    ("name", "text", "message", "line"),
    [
        ("a.yaml", "seed: 1\ntasks: [a\n", "expected", 3),
        ("a.yaml", "seed: 1\nseed: 2\n", '"seed" is given twice', 2),
        ("a.json", '{"seed": 1,\n "seed": 2}', '"seed" is given twice', 2),
        ("a.json", '{"seed": 1,\n}', "Expecting property name|Illegal trailing comma", None),
        ("a.toml", "seed = 1\nseed = 2\n", "Cannot overwrite", 2),
        ("a.toml", "seed\n", "Expected '='", 1),
    ],
)
def test_broken_files_name_the_line(write, name, text, message, line):
    with pytest.raises(ConfigError, match=message) as caught:
        read(write(name, text))
    assert line is None or caught.value.where.endswith(f"{name}, line {line}")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.yaml", b"- a\n- b\n", "not a list"),
        ("a.json", b"3", "not a int"),
        ("a.txt", b"seed: 1", "can't tell the format"),
        ("a.yaml", "seed: 1".encode("utf-16"), "not UTF-8"),
    ],
)
def test_files_that_are_no_configuration_are_refused(write, name, data, message):
    with pytest.raises(ConfigError, match=message):
        read(write(name, data))


def test_missing_files_are_named(tmp_path):
    with pytest.raises(ConfigError, match="No such file") as caught:
        read(tmp_path / "gone.yaml")
    assert str(tmp_path / "gone.yaml") in caught.value.where


def test_objects_that_yaml_could_build_are_refused(write):
    with pytest.raises(ConfigError, match="broken"):
        read(write("a.yaml", "seed: !!python/object/apply:os.getcwd []\n"))


@pytest.mark.parametrize(
    ("name", "layers", "rank"),
    [("attention", "attention", 32), ("mlp", "mlp", 32), ("both", "attention+mlp", 32), ("rank-8", "attention+mlp", 8)],
)
def test_files_of_adapters_go_on_top_of_a_preset(name, layers, rank):
    found = resolve(files=[EXAMPLES / "lora" / f"{name}.yaml"], preset="qwen3-vl-lora").config
    assert (found.lora_target_option, found.lora_rank) == (layers, rank)
