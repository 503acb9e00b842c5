import json

import pytest
from PIL import Image

from cuarl.agent import formats
from cuarl.agent.formats import Size
from cuarl.agent.formats.qwen25_vl.format import Qwen25VL
from cuarl.cli.app import run


def test_all_formats_are_listed_with_what_the_model_sees(capsys):
    assert run(["doctor", "coordinates", "--screen", "360x640"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert len(lines) == 1 + len(formats.NAMES)
    assert next(line for line in lines if line.startswith("qwen2.5-vl")).split()[3] == "364x644"
    assert all(line.split()[-1] == "ok" for line in lines[1:])
    assert "proven" in err


def test_one_format_lists_its_targets_and_draws_them(capsys, tmp_path):
    png = tmp_path / "seen.png"
    args = ["doctor", "coordinates", "Qwen/Qwen2.5-VL-3B-Instruct", "--screen", "1080x2400", "--seen", "672x1484"]
    assert run([*args, "--png", str(png)]) == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 40 and "seen 672x1484" in err
    with Image.open(png) as image:
        assert image.size == (672, 1484)


def test_json_has_every_number(capsys):
    assert run(["doctor", "coordinates", "anthropic", "--screen", "1920x1080", "--device", "desktop", "--json"]) == 0
    (proof,) = json.loads(capsys.readouterr().out)
    assert (proof["format"], proof["holds"], proof["seen"]) == ("anthropic-computer", True, [1456, 819])
    assert proof["targets"][0]["target"] == [191, 76] and proof["targets"][0]["fault"] is None


def test_a_proof_that_fails_ends_with_3(capsys, monkeypatch):
    monkeypatch.setattr(Qwen25VL, "grid", lambda self, screen, resized: Size(500, 500))
    assert run(["doctor", "coordinates", "qwen2.5-vl", "--screen", "360x640"]) == 3
    out, err = capsys.readouterr()
    assert "drawn at" in out and "not proven: qwen2.5-vl-mobile" in err


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["qwen2"], "neither a format nor a model"),
        (["json", "--seen", "300x300"], "--seen has no effect with json"),
        (["--screen", "big"], '"big" is no size'),
        (["--screen", "0x5"], '"0x5" is no size'),
        (["--device", "watch"], 'no device "watch"'),
        (["--png", "x.png"], "a picture shows one format"),
    ],
)
def test_what_makes_no_sense_is_refused(capsys, args, says):
    assert run(["doctor", "coordinates", *args]) == 2
    assert says in capsys.readouterr().err
