"""What a start would meet is met before anything is made."""

import shutil
from collections import namedtuple

import pytest

from cuarl.config.load import resolve
from cuarl.env.backend import Backend
from cuarl.errors import CheckpointError, ConfigError, PrerequisiteError, RunExists
from cuarl.policy import tiny
from cuarl.policy.load import examine
from cuarl.policy.spec import LoraSpec, ModelSpec
from cuarl.run import Run
from cuarl.settings import Settings
from cuarl.tasks.task import Task
from cuarl.workflow import preflight
from cuarl.workflow.experiment import Experiment


@pytest.fixture
def settings(tmp_path):
    return Settings(_env_file=None, runs_dir=tmp_path / "runs")


def experiment(settings, flags=None, **more):
    return Experiment(resolved=resolve(flags={"tasks": ["settings"], **(flags or {})}), settings=settings, **more)


@pytest.fixture
def model(tmp_path):
    """A copy of the shipped base, to be damaged."""
    return shutil.copytree(tiny.path(), tmp_path / "model")


def test_a_name_that_is_taken_is_told_with_what_its_kind_of_run_can_do(settings, tmp_path):
    for kind, hint in (("train", "--resume train to resume it, --name"), ("rollout", "--name")):
        Run.create(tmp_path / "runs", resolve(), kind=kind, name=kind)
        with pytest.raises(RunExists) as caught:
            preflight.check_place(experiment(settings, name=kind))
        assert caught.value.hint.startswith(hint)
        preflight.check_place(experiment(settings, name=kind, overwrite=True))
    preflight.check_place(experiment(settings, name="new"))
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["rollout", "train"]


def test_runs_to_imitate_must_be_there(settings, tmp_path):
    imitating = experiment(settings, {"algorithm": "sft", "sft_runs": ["demos"]})
    with pytest.raises(ConfigError, match='there is no run "demos"'):
        preflight.check_place(imitating)
    Run.create(tmp_path / "runs", resolve(), kind="rollout", name="demos")
    preflight.check_place(imitating)


def test_a_disk_without_room_is_named_before_a_folder_is_made(settings, tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")(1 << 40, 1 << 40, 1 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(PrerequisiteError, match="only 1 MiB are free") as caught:
        preflight.check_place(experiment(settings))
    assert caught.value.hint == f"df -h {tmp_path}" and not (tmp_path / "runs").exists()


def test_tasks_that_nobody_can_solve_are_named():
    tasks = [Task(id=f"t{n}", description="g") for n in range(5)]
    preflight.check_oracle(Backend(None), tasks)
    with pytest.raises(ConfigError, match=r"solved: t1, t2, t3 and 1 more\n"):
        preflight.check_oracle(Backend(None, may_solve=lambda task: task.id == "t0"), tasks)


def test_a_whole_model_is_told_by_its_numbers(settings, model):
    found = examine(ModelSpec(model=str(model), device="cpu"))
    assert found.family == "qwen3_vl" and found.folder == model
    from safetensors import safe_open

    with safe_open(model / "model.safetensors", "pt") as weights:
        assert found.parameters == sum(weights.get_tensor(name).numel() for name in weights.keys())  # noqa: SIM118
    told = preflight.model_facts(experiment(settings), ModelSpec(device="cpu"), found, trained=True)
    assert told["weights"].endswith(" MiB on cpu") and "free in" in told["disk"]


def test_training_all_weights_is_told_with_its_state(settings, model):
    spec = ModelSpec(model=str(model), device="cpu", train="full", dtype="float32")
    told = preflight.model_facts(experiment(settings), spec, examine(spec), trained=True)
    assert "of gradients and optimiser" in told["weights"] and "a checkpoint takes about" in told["disk"]
    # a weight of 16 bits has an original of 32 beside it
    short = preflight.model_facts(
        experiment(settings), spec.model_copy(update={"dtype": "bfloat16"}), examine(spec), trained=True
    )
    size = examine(spec).parameters / 2**20
    assert f"{2 * size:.0f} MiB on" in short["weights"] and f"and {16 * size:.0f} MiB" in short["weights"]
    assert f"takes about {14 * size:.0f} MiB" in short["disk"]


def cut(model):
    (model / "model.safetensors").write_bytes((model / "model.safetensors").read_bytes()[:-1])


def cut_in_its_header(model):
    (model / "model.safetensors").write_bytes((model / "model.safetensors").read_bytes()[:100])


def longer(model):
    with (model / "model.safetensors").open("ab") as file:
        file.write(b"x")


def without_weights(model):
    (model / "model.safetensors").unlink()


def a_shard_short(model):
    (model / "model.safetensors.index.json").write_text(
        '{"weight_map": {"a": "model.safetensors", "b": "two.safetensors"}}'
    )


def odd_index(model):
    (model / "model.safetensors.index.json").write_text("[]")


def without_a_tokenizer(model):
    (model / "tokenizer.json").unlink()


def without_a_processor(model):
    (model / "preprocessor_config.json").unlink()


def another_kind(model):
    (model / "config.json").write_text('{"model_type": "gpt2"}')


def no_config(model):
    (model / "config.json").unlink()


def empty_config(model):
    (model / "config.json").write_text("{}")


@pytest.mark.parametrize(
    ("damage", "error", "said"),
    [
        (cut, CheckpointError, "bytes of"),
        (cut_in_its_header, CheckpointError, "no safetensors file, or not all of one"),
        (longer, CheckpointError, "bytes of"),
        (without_weights, PrerequisiteError, "there are no weights"),
        (a_shard_short, PrerequisiteError, "1 of 2 files of weights are missing, two.safetensors for one"),
        (odd_index, CheckpointError, "index of the weights"),
        (without_a_tokenizer, PrerequisiteError, "no tokenizer"),
        (without_a_processor, PrerequisiteError, "can't be read"),
        (another_kind, ConfigError, "does not turn pictures and text into text"),
        (no_config, ConfigError, "no model in it"),
        (empty_config, PrerequisiteError, "can't be read"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_damaged_model_is_refused_before_it_is_loaded(model, damage, error, said):
    damage(model)
    with pytest.raises(error, match=said):
        examine(ModelSpec(model=str(model), device="cpu"))


@pytest.mark.parametrize("name", ["models/nowhere", "./nowhere", "/nowhere/at/all", "~/nowhere", "nowhere"])
def test_what_starts_like_a_path_is_not_looked_for_on_the_hub(tmp_path, monkeypatch, name, model):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(model, tmp_path / "models" / "somewhere")
    with pytest.raises(ConfigError, match=f'no model "{name}"') as caught:
        examine(ModelSpec(model=name))
    assert ("models/somewhere" in str(caught.value)) == (name == "models/nowhere")


def test_a_hub_model_that_is_not_here_is_told_and_not_asked_for(settings, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec = ModelSpec(model="nobody-84/nothing-84", lora=LoraSpec(), train="adapter")
    assert examine(spec) is None
    assert (
        "hf download nobody-84/nothing-84"
        in preflight.model_facts(experiment(settings), spec, None, trained=True)["weights"]
    )


def test_no_device_of_that_name_is_told(model):
    with pytest.raises(ConfigError, match="no device cuda:9"):
        examine(ModelSpec(model=str(model), device="cuda:9"))


def test_a_base_in_four_bits_is_told_by_what_it_takes(settings, model):
    spec = ModelSpec(model=str(model), device="cpu", quantization="nf4")
    plain, found = examine(spec.model_copy(update={"quantization": "none"})), examine(spec)
    assert plain.packed == 0 < found.packed < found.parameters == plain.parameters
    told = [preflight.model_facts(experiment(settings), spec, e, trained=True)["weights"] for e in (plain, found)]
    sizes = [float(text.split(", ")[1].split(" MiB")[0]) for text in told]
    assert sizes[1] < sizes[0] - found.packed * 3 / 2**20
    assert told[1].endswith(f"{found.packed / 1e6:,.1f} million of them in four bits")
