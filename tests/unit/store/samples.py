"""Episodes for tests: one that uses every field, and plain ones."""

from PIL import Image

from cuarl.store import RunRecord
from cuarl.trajectory import CheckResult, Group, RewardPart, Sampled, Trajectory, Turn, Verdict
from cuarl.types import Answer, Click, Failure, Finish, ImageRef, ParseError, Screenshot, StopReason


def picture(shade=0, size=(6, 10)):
    return Screenshot(Image.new("RGB", size, (shade % 256, 40, 200)))


def ref(number=0):
    return ImageRef(digest=f"{number:064x}", width=360, height=640)


def plain(episode_id="e0", **fields):
    """A one-turn episode."""
    turn = Turn(index=0, screenshot=ref(), action=Finish())
    values = {
        "episode_id": episode_id, "task_id": "wifi_on", "goal": "Turn Wi-Fi on", "turns": (turn,),
        "stop": StopReason.DONE, "verdict": Verdict(success=True, score=1.0), "reward": 1.0,
    }  # fmt: skip
    return Trajectory(**{**values, **fields})


def rich(episode_id="rich", **fields):
    """Every field differs from its default, and texts hold what databases dislike."""
    sampled = Sampled(
        prompt_ids=(151644, 5, 5, 5, 0),
        images=(ref(1), ref(2)),
        token_ids=(7, 8, 2**31 - 1),
        logprobs=(-0.1, -1.7976931348623157e308, -5e-324),
        text="tap\x00 “OK” 🙂 \ue0ff",
        stop="length",
        temperature=0.7,
        policy="qwen",
        policy_version=3,
        exact=False,
    )
    turns = (
        Turn(
            index=0,
            screenshot=ref(1),
            action=Click(x=3, y=4, count=2),
            warnings=("clamped",),
            sampled=sampled,
            text={"url": "a\x00b"},
            reward=-0.25,
            started_at=1e9 + 1.25,
            model_s=0.1,
            env_s=1e-9,
            settle_ms=12.5,
            settled=True,
            changed=False,
            resized=(364, 644),
        ),
        Turn(
            index=1,
            screenshot=ref(2),
            parse_error=ParseError(code="bad_json", message="{\x00"),
            rejected="no such key",
            sampled=sampled.model_copy(update={"logprobs": None}),
        ),
        Turn(index=5, screenshot=ref(3), action=Answer(text="42")),
    )
    values = {
        "episode_id": episode_id, "attempt": 2, "step": 7, "purpose": "train", "task_id": "wifi_on", "goal": "Go\n“on”",
        "category": "settings", "difficulty": "easy", "env": "phone", "backend": "gbox",
        "device": "box-\x00-1", "ready_s": 0.75, "check_at": 1e9 + 3.0, "check_s": 0.25, "agent": "qwen3-vl-mobile",
        "policy": "qwen",
        "policy_version": 3, "seed": 2**70 + 1, "turns": turns, "final_screenshot": ref(4), "answer": "\x00",
        "stop": StopReason.FAILED,
        "failure": Failure(boundary="env", kind="EnvError", message="gone\x00", traceback="…"),
        "verdict": Verdict(
            success=False, score=0.5, claimed=True, side_effects=("network.bluetooth",),
            checks=(CheckResult(path="wifi", op="equals", expected=True, actual={"on": [1, None, "x"]}, passed=False),),
        ),
        "reward": -1.5, "reward_parts": (RewardPart(name="done", value=-1.5, evidence="no"),), "started_at": 1e9 + 0.1,
        "wall_s": 3.25, "info": {"big": 1.7000000000000001e18, "inf": float("-inf"), "none": None, "\x00": [0.1, {}]},
    }  # fmt: skip
    return Trajectory(**{**values, **fields})


def group(group_id="g0", size=3, **fields):
    members = tuple(plain(f"{group_id}-{i}", group_id=group_id, attempt=i, seed=11, **fields) for i in range(size))
    return Group(group_id=group_id, task_id="wifi_on", seed=11, trajectories=members)


def run(run_id="r1", **fields):
    return RunRecord(id=run_id, name=fields.pop("name", run_id), **fields)


def save(store, what, pictures=()):
    """Store an episode or a group, whole or not at all; what was refused is raised here."""
    store.enqueue(what, pictures)
    store.drain()


def save_session(store, session):
    store.write_sessions([session])
