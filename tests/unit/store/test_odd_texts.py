"""No text that a policy, a page or a client can produce stands in the way of what is stored around it."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cuarl.cli.app import run
from cuarl.errors import StoreError
from cuarl.monitor.jsonl import JsonLinesSink
from cuarl.store import RunRecord, Store
from cuarl.store.export import export_store
from cuarl.store.imports import import_store
from cuarl.trajectory import CheckResult, RewardPart, Sampled, Trajectory, Turn, Verdict
from cuarl.types import Failure, ParseError, StopReason, TypeText
from tests.unit.cli.conftest import bare_terminal
from tests.unit.store.samples import picture, save

__all__ = ["bare_terminal"]

URL = "sqlite:///runs/cuarl.db"
ODD = {
    "a half of a surrogate pair": "a\ud800b",
    "the other half, last": "ab\udfff",
    "halves in the wrong order": "\udc00\ud800",
    "NUL": "a\x00b",
    "a screen that is cleared": "\x1b[2J\x9b2J",
    "line and direction marks": "a\u2028b\u202ec\r\nd\ufeff",
    "no character": "\ufffe\uffff\U0010ffff",
    "the store's own escape": "\ue0ff0041\ue0ff",
    "markup": "[/red][bold]</script>%s{0}",
    "a path": "../../../etc/passwd",
    "a page": "word " * 50_000,
    "nothing": "",
}


def episode(odd: str, episode_id: str) -> Trajectory:
    """One with that text wherever a text can stand."""
    shot = picture(1)
    sampled = Sampled(prompt_ids=(1,), token_ids=(2,), logprobs=(-0.5,), text=odd, images=(shot.ref,), policy=odd)
    turns = (
        Turn(
            index=0,
            screenshot=shot.ref,
            action=TypeText(text=odd),
            sampled=sampled,
            warnings=(odd,),
            rejected=odd,
            text={odd: odd},
        ),
        Turn(index=1, screenshot=shot.ref, parse_error=ParseError(code="bad_json", message=odd)),
    )
    check = CheckResult(path=odd, op="equals", expected=odd, actual={odd: [odd]}, passed=False)
    return Trajectory(
        episode_id=episode_id,
        run_id="r1",
        task_id=f"task{odd}",
        goal=odd,
        category=odd,
        difficulty=odd,
        env=odd,
        agent=odd,
        policy=odd,
        turns=turns,
        final_screenshot=shot.ref,
        answer=odd,
        stop=StopReason.FAILED,
        failure=Failure(boundary="env", kind="EnvError", message=odd, traceback=odd),
        verdict=Verdict(success=False, score=0.0, side_effects=(odd,), checks=(check,)),
        reward=0.5,
        reward_parts=(RewardPart(name=odd, value=0.5, evidence=odd),),
        info={odd: [odd, {odd: odd}]},
    )


@pytest.fixture
def told(capsys):
    def tell(*args):
        code = run(list(args))
        out, err = capsys.readouterr()
        assert code == 0, err
        assert not {c for c in out + err if c < " " and c not in "\n"} and "\x9b" not in out + err
        (out + err).encode()
        return out

    return tell


@pytest.fixture
def full():
    """A store with every odd text, wherever a text can stand, between two episodes that have none."""
    everything = [*ODD.values(), ""]
    stored = [episode(odd, f"{number:02d}-{odd[:50]}") for number, odd in enumerate(everything)]
    with Store.open(URL) as store:
        store.start_run(
            RunRecord(id="r1", name="".join(ODD.values())[:99], config=dict.fromkeys(everything, everything))
        )
        for trajectory in stored:
            save(store, trajectory, [picture(1)])
        store.log_event("r1", "odd", dict(zip(everything, everything, strict=True)))
        store.finish_run("r1", "failed", ODD["markup"])
    return stored


def test_c59_any_text_is_exported_and_brought_back(full, told):
    assert "the store is sound" in told("db", "check", "--deep")
    assert json.loads(told("db", "export", "out", "--json"))["counts"]["episodes"] == len(full)
    told("db", "import", "out", "--db", "sqlite:///copy/x.db")
    with Store.open("sqlite:///copy/x.db") as store:
        assert sorted(store.trajectories(), key=lambda e: e.episode_id) == full
        assert store.events()[0].data == {odd: odd for odd in ODD.values()}


def test_c59_any_text_is_shown_without_steering_the_terminal(full, told, tmp_path):
    for trajectory in full:
        number = trajectory.episode_id[:3]
        assert "turn" in told("rollout", "show", number)
    for number, odd in ((0, "a half of a surrogate pair"), (3, "NUL")):
        shown = json.loads(told("rollout", "show", f"{number:02d}", "--json"))
        assert shown["episode"]["answer"] == ODD[odd]
    folders = list((tmp_path / "runs" / "pictures").iterdir())
    assert len(folders) == len(full) and all(len(list(folder.glob("*.png"))) == 3 for folder in folders)


def test_parquet_takes_what_is_no_unicode_with_a_replacement(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    with Store.open(URL) as store:
        store.start_run(RunRecord(id="r1", name="r1"))
        save(store, episode("a\ud800b", "e"), [picture(1)])
        export_store(store, tmp_path / "out")
    [first, _] = parquet.read_table(tmp_path / "out" / "turns.parquet").to_pylist()
    assert (first["goal"], first["text"]) == ("a\ufffdb", "a\ufffdb")
    assert json.loads(first["action"])["text"] == "a\ud800b"


ANY_TEXT = st.text(alphabet=st.characters(), max_size=20)  # halves of pairs included, unless two make a whole one
WHOLE = ANY_TEXT.filter(lambda text: text == json.loads(json.dumps(text)))


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WHOLE, min_size=5, max_size=5))
def test_texts_that_nobody_thought_of(tmp_path_factory, odd):
    folder = tmp_path_factory.mktemp("any")
    wanted = [episode(text, f"e{number}") for number, text in enumerate(odd)]
    with Store.open(f"sqlite:///{folder}/a.db") as store, Store.open(f"sqlite:///{folder}/b.db") as other:
        store.start_run(RunRecord(id="r1", name="r1"))
        store.write([store._as_write(trajectory) for trajectory in wanted])
        export_store(store, folder / "out", images=False)
        import_store(other, folder / "out", at=0.0)
        assert list(store.trajectories()) == list(other.trajectories()) == wanted


def test_events_of_a_run_keep_what_is_no_unicode(tmp_path):
    sink = JsonLinesSink(tmp_path / "metrics.jsonl", tmp_path / "events.jsonl")
    sink.event("a\ud800", {"b\udfff": "\ud801"})
    sink.close()
    found = json.loads((tmp_path / "events.jsonl").read_text(encoding="utf-8"))
    assert (found["event"], found["b\udfff"]) == ("a\ud800", "\ud801")


def test_what_is_nested_beyond_reading_is_refused_and_its_neighbours_are_stored():
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    with Store.open(URL) as store:
        store.start_run(RunRecord(id="r1", name="r1"))
        store.enqueue(episode("a", "a"), [picture(1)])
        store.enqueue(episode("b", "b").model_copy(update={"info": {"deep": deep}}), [picture(1)])
        store.enqueue(episode("c", "c"), [picture(1)])
        with pytest.raises(StoreError, match="recursion"):
            store.drain()
        assert store.episode_ids() == ["a", "c"]


def test_an_argument_that_is_no_text_is_refused(capsys):
    assert run(["rollout", "--name", "a\udcff"]) == 2
    assert "not UTF-8" in capsys.readouterr().err
