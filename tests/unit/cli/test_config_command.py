import json

import pytest

from cuarl.cli.app import run
from cuarl.config.keys import keys
from cuarl.config.load import presets, resolve
from cuarl.config.schema import ExperimentConfig
from cuarl.config.unions import UNIONS


def test_show_prints_a_file_that_reads_back(capsys, tmp_path):
    assert run(["config", "show", "qwen3-vl-lora", "-s", "seed=3"]) == 0
    (tmp_path / "mine.yaml").write_text(capsys.readouterr().out)
    assert resolve(files=[tmp_path / "mine.yaml"]).config == resolve(preset="qwen3-vl-lora", sets=["seed=3"]).config


def test_show_explains_the_fields_that_match(capsys):
    run(["config", "show", "--keys", "algorithm.clip_*,seed", "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert [row["key"] for row in rows] == ["algorithm.clip_low", "algorithm.clip_high", "seed"]
    assert rows[2] == {
        "key": "seed",
        "value": 0,
        "source": "default",
        "kind": "integer",
        "meaning": "Seed of everything random: task order, devices, sampling, initialisation.",
    }


def test_show_explains_all_fields_in_a_table(capsys):
    run(["config", "show", "--keys", "all"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == [key.path for key in keys().values()]


def test_show_suggests_a_key(capsys):
    assert run(["config", "show", "--keys", "lerning_rate"]) == 2
    assert 'did you mean "learning_rate"?' in capsys.readouterr().err


@pytest.mark.parametrize("args", [["config", "show", "nope"], ["config", "show", "-c", "nope.yaml"]])
def test_show_of_what_is_not_there_is_a_usage_error(capsys, args):
    assert run(args) == 2
    capsys.readouterr()


def test_schema_describes_every_field(capsys):
    assert run(["config", "schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert set(schema["properties"]) == set(ExperimentConfig.model_fields)
    assert all("description" in field for field in schema["properties"].values())
    assert schema["additionalProperties"] is False
    for name, union in UNIONS.items():
        for type_ in union.types():
            properties = schema["$defs"][f"{name}.{type_}"]["properties"]
            assert set(properties) == set(union.record(type_).model_fields)
            assert {"$ref": f"#/$defs/{name}.{type_}"} in schema["properties"][name]["anyOf"]


def test_show_explains_options_of_environments_that_are_not_chosen(capsys):
    run(["config", "show", "-s", "env=browser", "--keys", "env.settle_ms", "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert {row["source"] for row in rows if row["value"] is None} >= {"only with env linux", "only with env gbox"}
    assert [row["value"] for row in rows if row["source"] == "default"] == [100.0]


def test_presets_are_listed(capsys):
    run(["config", "presets", "--json"])
    assert {row["name"] for row in json.loads(capsys.readouterr().out)} == set(presets())
    run(["config", "presets"])
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1 + len(presets())
    assert "cuarl config show PRESET" in err
