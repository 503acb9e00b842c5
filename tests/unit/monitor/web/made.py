"""Episodes and rows for the monitor's tests."""

from cuarl.store.records import LiveRecord
from cuarl.tasks.task import Task
from cuarl.trajectory import CheckResult, RewardPart, Sampled, Trajectory, Turn, Verdict
from cuarl.types import Click, Failure, ParseError, StopReason, Swipe, TypeText
from tests.unit.store.samples import picture

PICTURE = picture(7, (128, 96))
REF = PICTURE.ref


def task(name, evil=""):
    return Task(id=name, suite="settings", description=f"Do {name}{evil}", category="settings", difficulty="easy")


def turns(evil):
    said = Sampled(
        prompt_ids=(1, 2, 3),
        images=(REF,),
        token_ids=(4, 5),
        logprobs=(-0.1, -2.0),
        text=f"<tool_call>{evil}",
        policy="tiny",
    )
    return (
        Turn(index=0, screenshot=REF, action=Click(x=20, y=30), sampled=said, started_at=1.7e9, model_s=1, env_s=0.1),
        Turn(index=1, screenshot=REF, action=TypeText(text=f"hello{evil}"), sampled=said, rejected=f"no{evil}"),
        Turn(index=2, screenshot=REF, action=Swipe(x=1, y=2, x2=60, y2=90), text={f"page{evil}": f"words{evil}"}),
        Turn(index=3, screenshot=REF, parse_error=ParseError(code="bad_json", message=f"what{evil}"), sampled=said),
    )


def episode(run_id, step, group, attempt, title, evil="", *, purpose="train", success=None, **fields):
    lost = (step, group, attempt) == (2, 1, 1)
    done = (attempt + group) % 2 == 0 if success is None else success
    check = CheckResult(path=f"wifi{evil}", op="equals", expected=f"on{evil}", actual=f"off{evil}", passed=done)
    values = {
        "episode_id": f"{run_id}.{step}.{group}.{attempt}",
        "run_id": run_id,
        "group_id": f"{run_id}.{step}.{group}",
        "attempt": attempt,
        "step": step,
        "purpose": purpose,
        "task_id": title,
        "goal": f"Do {title}{evil}",
        "category": "settings",
        "difficulty": "easy" if group % 2 else "hard",
        "env": "phone",
        "backend": "gbox",
        "device": f"box-{attempt}{evil}",
        "agent": f"agent{evil}",
        "policy": "tiny",
        "policy_version": step,
        "seed": 7,
        "turns": turns(evil)[: 4 - group % 2],
        "final_screenshot": REF,
        "answer": f"42{evil}",
        "stop": StopReason.FAILED if lost else StopReason.DONE,
        "failure": Failure(boundary="env", kind="EnvError", message=f"gone{evil}", traceback=f"trace{evil}")
        if lost
        else None,
        "verdict": None
        if lost
        else Verdict(success=done, score=float(done), checks=(check,), claimed=True, side_effects=(f"x{evil}",)),
        "reward": None if lost else float(done),
        "reward_parts": (RewardPart(name=f"done{evil}", value=1.0, evidence=f"yes{evil}"),),
        "started_at": 1.7e9,
        "ready_s": 0.5,
        "check_at": 1.7e9 + 3,
        "check_s": 0.25,
        "wall_s": 3.5 + attempt,
        "info": {"note": evil},
    }
    return Trajectory(**{**values, **fields})


def live_rows(run_id, evil=""):
    """A run in its third step, with one episode under way."""
    whole = {"step": 3, "total_steps": 4, "episodes": 4, "done": 1, "percent": 56.0, "left_s": 90.0}
    one = {
        "task_id": "wifi_on",
        "goal": f"Do it{evil}",
        "group_id": f"{run_id}.3.0",
        "attempt": 0,
        "step": 3,
        "purpose": "train",
        "backend": "gbox",
        "device": f"box-9{evil}",
        "started_at": 1.7e9,
        "max_turns": 10,
        "seed": "7",
        "turns": [t.model_dump(mode="json") for t in turns(evil)[:2]],
        "screen": REF.model_dump(mode="json"),
    }
    return [
        LiveRecord(run_id=run_id, phase="collecting", at=1.7e9, data=whole),
        LiveRecord(run_id=run_id, episode_id=f"{run_id}.3.0.0", phase="acting", at=1.7e9, data=one),
    ]
