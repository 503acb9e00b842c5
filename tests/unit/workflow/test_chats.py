"""Conversations are what the model was shown and answered, turn by turn."""

import json

import anyio
import pytest

from cuarl import objects
from cuarl.agent import formats
from cuarl.agent.model import ModelAgent
from cuarl.agent.prompt import Window
from cuarl.agent.scripted import DoNothingAgent
from cuarl.errors import ConfigError
from cuarl.policy.sampler import Message, Picture, SampledText, SamplerCapabilities, SamplingParams, Text
from cuarl.store import RunRecord, Store
from cuarl.store.records import HumanVerdict
from cuarl.tasks.task import TaskInstance
from cuarl.trajectory import Sampled, Trajectory, Turn, Verdict
from cuarl.types import Button, Click, Finish, Observation, StopReason
from cuarl.workflow.chat_files import NO_PLACE, export_chats
from cuarl.workflow.chats import NO_ACTION, NO_FORMAT, NO_PICTURE, OTHER_WINDOW, Chats
from tests.unit.policy.pictures import screen

TASK = TaskInstance(task_id="wifi", goal="Turn on <b>Wi-Fi</b>")
SCREENS = [screen(i) for i in range(6)]


class Answering:
    """A sampler that taps, answers rubbish once, and notes what it was shown."""

    capabilities = SamplerCapabilities(token_ids=True, logprobs=True, images=True)

    def __init__(self, format):
        self.format, self.shown = format, []

    async def sample(self, request):
        self.shown.append(request.messages)
        count = len(self.shown)
        size = formats.Size(SCREENS[0].width, SCREENS[0].height)
        text = "well …" if count == 3 else self.format.render(Click(x=10 * count, y=8), size)
        images = tuple(p.screenshot.ref for m in request.messages for p in m.parts if isinstance(p, Picture))
        return Sampled(prompt_ids=(1,), images=images, token_ids=(count,), logprobs=(-0.5,), text=text, policy="p")

    async def close(self): ...


def play(format, name, run_id="r1", window=None, **fields):
    """An episode of six turns as the agent of a model plays it, and what its sampler was shown in each."""
    sampler = Answering(format)
    agent = ModelAgent(sampler, format, params=SamplingParams(), window=window)
    turns, pictures = [], list(SCREENS)
    for i, shot in enumerate(SCREENS):
        observation = Observation(shot, {"note": f"page {i} said no"} if i % 2 else {})
        decision = anyio.run(agent.act, TASK, observation, turns, 5)
        pictures += decision.pictures.values()
        turns.append(
            Turn(
                index=i,
                screenshot=shot.ref,
                action=decision.action,
                parse_error=decision.parse_error,
                sampled=decision.sampled,
                resized=decision.resized,
                text=observation.text,
                rejected="no such key" if i == 1 else None,
            )
        )
    return episode(name, turns, agent=agent.name, run_id=run_id, **fields), pictures, sampler.shown


def episode(name, turns, *, success=True, **fields):
    return Trajectory(
        episode_id=name,
        task_id=TASK.task_id,
        goal=TASK.goal,
        env="phone",
        turns=tuple(turns),
        stop=StopReason.DONE,
        verdict=Verdict(success=success, score=float(success)),
        reward=float(success),
        **fields,
    )


@pytest.fixture
def store(tmp_path):
    with Store.open(f"sqlite:///{tmp_path}/x.db") as store:
        store.start_run(RunRecord(id="r1", name="r1", config={"history_images": None, "history_turns": None}))
        yield store


def save(store, trajectory, pictures=()):
    store.enqueue(trajectory, pictures)
    store.drain()


def words(messages):
    return [(m.role, [p.screenshot.digest if isinstance(p, Picture) else p.text for p in m.parts]) for m in messages]


def named(chat):
    """The words of a conversation with the digests of its pictures in their places."""
    digests = (one.digest for one in chat.pictures)
    return [(m.role, [next(digests) if isinstance(p, Picture) else p.text for p in m.parts]) for m in chat.messages]


@pytest.mark.parametrize("family", formats.NAMES)
def test_a_conversation_is_what_the_model_was_shown_and_answered(store, family):
    """Also of families that are shown several screenshots, smaller ones, or words beside them."""
    played, pictures, shown = play(formats.get(family), "e")
    save(store, played, pictures)
    chats = Chats(store)
    found = list(chats)
    assert [chat.turn.index for chat in found] == [0, 1, 3, 4, 5]
    for chat in found:
        i = chat.turn.index
        assert named(chat) == [*words(shown[i]), ("assistant", [played.turns[i].sampled.text])]
    assert chats.left_out == {NO_ACTION: 1}


def test_the_window_is_that_of_the_run(store):
    wide = {"history_images": 2, "history_turns": 1}
    store.start_run(RunRecord(id="r2", name="r2", config=wide))
    played, pictures, shown = play(formats.get("qwen3-vl"), "e", run_id="r2", window=Window(**wide))
    save(store, played, pictures)
    assert [named(chat)[:-1] for chat in Chats(store)] == [words(shown[i]) for i in (0, 1, 3, 4, 5)]


def test_a_prompt_whose_pictures_do_not_fit_the_record_is_not_made_up(store):
    store.start_run(RunRecord(id="r2", name="r2", config={"history_images": 2}))
    played, pictures, _ = play(formats.get("qwen3-vl"), "e", run_id="r2")
    save(store, played, pictures)
    chats = Chats(store)
    assert [chat.turn.index for chat in chats] == [0] and chats.left_out == {NO_ACTION: 1, OTHER_WINDOW: 4}


def test_successes_are_taken_as_people_see_them(store):
    for name, success in (("good", True), ("bad", False), ("overruled", True)):
        played, pictures, _ = play(formats.get("qwen3-vl"), name, success=success)
        save(store, played, pictures)
    store.save_human_verdict(HumanVerdict(episode_id="overruled", success=False))
    assert {chat.episode.episode_id for chat in Chats(store)} == {"good"}
    assert {chat.episode.episode_id for chat in Chats(store, failed=True)} == {"good", "bad", "overruled"}


def test_scripted_agents_are_left_out_or_speak_in_the_words_of_a_family(store):
    turns = [Turn(index=i, screenshot=s.ref, action=a) for i, (s, a) in enumerate(zip(SCREENS, ACTIONS, strict=False))]
    save(store, episode("o", turns, agent="oracle"), SCREENS)
    silent = Chats(store)
    assert list(silent) == [] and silent.left_out == {NO_FORMAT: 3}
    format = formats.get("ui-tars-1.5")
    found = list(Chats(store, renderer="ui-tars-1.5"))
    size = formats.Size(SCREENS[0].width, SCREENS[0].height)
    seen = formats.saw(format, size)
    for i, chat in enumerate(found):
        assert chat.messages[-1] == Message("assistant", (SampledText(format.render(ACTIONS[i], size, resized=seen)),))
        assert [one.digest for one in chat.pictures] == [s.digest for s in SCREENS[: i + 1]]
        assert chat.messages[0] == Message("system", (Text(format.told(seen)),))


ACTIONS = (Click(x=3, y=4), Button(name="back"), Finish(success=True, message="on"))


def test_a_screenshot_that_is_missing_leaves_its_turns_out(store):
    played, pictures, _ = play(formats.get("qwen3-vl"), "e")
    save(store, played, pictures[1:])
    chats = Chats(store)
    assert len(list(chats)) == 4 and chats.left_out[NO_PICTURE] == 1


@pytest.fixture
def filled(store):
    played, pictures, _ = play(formats.get("ui-tars-1.5"), "e")
    save(store, played, pictures)
    other, pictures, _ = play(formats.get("qwen3-vl"), "held-out", purpose="eval")
    save(store, other, pictures)
    return store


def test_trl_has_messages_whose_pictures_are_images(filled, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    done = export_chats(Chats(filled), tmp_path / "out", "trl")
    assert done.conversations == {"rollout": 5, "eval": 5} and done.episodes == 2
    rows = parquet.read_table(tmp_path / "out" / "data" / "rollout-00000.parquet").to_pylist()
    expected = [chat for chat in Chats(filled) if chat.episode.episode_id == "e"]
    for row, chat in zip(rows, expected, strict=True):
        assert [m["role"] for m in row["messages"]] == [m.role for m in chat.messages]
        kinds = [part["type"] for m in row["messages"] for part in m["content"]]
        assert kinds.count("image") == len(row["images"]) == len(chat.pictures) and kinds.count("text") > 1
        assert [image["bytes"] for image in row["images"]] == [one.png() for one in chat.pictures]
        assert row["messages"][-1]["content"] == [{"type": "text", "text": chat.turn.sampled.text}]


def test_datasets_loads_conversations_with_their_pictures(filled, tmp_path):
    datasets = pytest.importorskip("datasets")
    export_chats(Chats(filled), tmp_path / "out", "trl")
    loaded = datasets.load_dataset(str(tmp_path / "out"), split="eval", cache_dir=str(tmp_path / "cache"))
    assert [one.size for one in loaded[0]["images"]] == [(SCREENS[0].width, SCREENS[0].height)]
    assert loaded[0]["messages"][1]["content"] == [{"type": "image", "text": None}, {"type": "text", "text": TASK.goal}]


def test_llama_factory_has_a_mark_for_each_picture_and_is_told_its_columns(filled, tmp_path):
    done = export_chats(Chats(filled), tmp_path / "out", "llama-factory")
    known = json.loads((tmp_path / "out" / "dataset_info.json").read_text())
    assert set(known) == {"cuarl_rollout", "cuarl_eval"} and known["cuarl_eval"]["file_name"] == "eval.jsonl"
    rows = [json.loads(line) for line in (tmp_path / "out" / "rollout.jsonl").read_text().splitlines()]
    assert len(rows) == done.conversations["rollout"] == 5
    for row in rows:
        assert sum(m["content"].count("<image>") for m in row["messages"]) == len(row["images"])
        assert all((tmp_path / "out" / path).is_file() for path in row["images"])
        assert [m["role"] for m in row["messages"][:2]] == ["system", "user"]
        roles = [m["role"] for m in row["messages"][1:]]
        assert roles == ["user", "assistant"] * (len(roles) // 2)
    shown = [one for one in Chats(filled) if one.episode.episode_id == "e"]
    assert (tmp_path / "out" / rows[0]["images"][0]).read_bytes() == shown[0].pictures[0].png()


def test_a_text_that_llama_factory_would_take_for_a_picture_is_left_out(store, tmp_path):
    played, pictures, _ = play(formats.get("qwen3-vl"), "e")
    save(store, played.model_copy(update={"goal": "Open <image>.png"}), pictures)
    with pytest.raises(ConfigError, match=f"5 {NO_PLACE}"):
        export_chats(Chats(store), tmp_path / "out", "llama-factory")
    assert not (tmp_path / "out").exists()


def test_pictures_are_redacted_and_the_card_says_so(filled, tmp_path):
    export_chats(Chats(filled, run="r1"), tmp_path / "out", "llama-factory", redact=objects.name(blank))
    images = list((tmp_path / "out" / "images").iterdir())
    assert len(images) == 1, "all have become the same"
    assert "were changed by" in (tmp_path / "out" / "README.md").read_text()


def blank(pixels):
    pixels[:] = 9
    return pixels


def test_nothing_to_write_is_told(store, tmp_path):
    save(store, episode("o", [Turn(index=0, screenshot=SCREENS[0].ref, action=Finish())], agent=DoNothingAgent.name))
    with pytest.raises(ConfigError, match="1 of scripted agents"):
        export_chats(Chats(store), tmp_path / "out", "llama-factory")
    with pytest.raises(ConfigError, match='no run "nope"'):
        export_chats(Chats(store, run="nope"), tmp_path / "out", "llama-factory")
    assert not (tmp_path / "out").exists()
