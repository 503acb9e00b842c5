"""Screenshots that are changed on their way out."""

import json

import pytest

from cuarl import objects
from cuarl.errors import ConfigError
from cuarl.store import Store
from cuarl.store.dataset.export import export_dataset
from cuarl.store.export import export_store
from cuarl.store.imports import import_store
from cuarl.store.redaction import Redaction, redacted_by
from cuarl.trajectory import Sampled, Turn
from cuarl.types import Finish
from tests.unit.store.samples import picture, plain, save

SHOT = picture(7)
MISSING = picture(8).ref


def black(pixels):
    pixels[:] = 0
    return pixels


@pytest.fixture
def store(tmp_path):
    sampled = Sampled(images=(SHOT.ref,), token_ids=(1,), logprobs=(-0.5,))
    turns = (Turn(index=0, screenshot=SHOT.ref, action=Finish(), sampled=sampled), Turn(index=1, screenshot=MISSING))
    with Store.open(f"sqlite:///{tmp_path}/x.db") as store:
        save(store, plain("e", turns=turns, final_screenshot=SHOT.ref, info={"kept": 1}), [SHOT])
        yield store


@pytest.mark.parametrize("write", [export_store, export_dataset])
def test_every_picture_is_another_and_the_record_says_so(store, tmp_path, write):
    if write is export_dataset:
        pytest.importorskip("pyarrow")
    name = objects.name(black)
    write(store, tmp_path / "out", redact=name)
    with Store.open(f"sqlite:///{tmp_path}/other/y.db") as other:
        import_store(other, tmp_path / "out", at=4e9)
        [episode] = other.trajectories()
        refs = [episode.turns[0].screenshot, episode.turns[0].sampled.images[0], episode.final_screenshot]
        assert {other.blobs.get(ref.digest).image.getextrema() for ref in refs} == {((0, 0), (0, 0), (0, 0))}
        assert list(other.blobs.digests()) == [refs[0].digest]
        assert episode.info == {"kept": 1, "redacted": name} and redacted_by(episode.info) == name
        assert episode.turns[1].screenshot == MISSING
        unchanged = {"turns", "final_screenshot", "info"}
        [before] = store.trajectories()
        assert episode.model_dump(exclude=unchanged) == before.model_dump(exclude=unchanged)
    whole = SHOT.png()
    assert not [path for path in (tmp_path / "out").rglob("*.*") if whole in path.read_bytes()]
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["redacted"] == name


def test_an_export_is_redacted_again_and_says_both(store, tmp_path):
    export_store(store, tmp_path / "one", redact=objects.name(black))
    with Store.open(f"sqlite:///{tmp_path}/other/y.db") as other:
        import_store(other, tmp_path / "one", at=4e9)
        export_store(other, tmp_path / "two", redact=objects.name(white))
    record = json.loads((tmp_path / "two" / "episodes.jsonl").read_text())
    assert record["info"]["redacted"] == f"{objects.name(black)}, {objects.name(white)}"


def white(pixels):
    pixels[:] = 255
    return pixels


WRONG = {
    "def f(a): return a[:4]": r"gives uint8 of shape \(4, 6, 3\), and must give an array of uint8 "
    r"of shape \(10, 6, 3\)",
    "def f(a): return a / 2": "gives float64 of shape",
    "def f(a): pass": "gives NoneType",
    "def f(a): return a.blurred": "failed: AttributeError",
    "f = 3": "is no function",
}


@pytest.mark.parametrize("source", WRONG, ids=range(len(WRONG)))
def test_a_function_with_a_mistake_is_told_and_leaves_nothing(store, tmp_path, source, request):
    file = tmp_path / f"redactions_{request.node.callspec.id}.py"
    file.write_text(source)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(ConfigError, match=WRONG[source]):
        export_store(store, tmp_path / "out", redact=f"{file}:f")
    assert [p for p in sorted(tmp_path.iterdir()) if p.name != "__pycache__"] == before


def test_a_function_that_is_not_there_is_told():
    with pytest.raises(ConfigError, match=r"the redaction .*nowhere"):
        Redaction("nowhere.py:f")
