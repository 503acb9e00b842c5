"""Fields that are one of several records: what is meant for which, where it stood before, and what importing them
costs."""

import json
import subprocess
import sys

import pytest
from pydantic import ValidationError

from cuarl.config import backends
from cuarl.config.earlier import nested
from cuarl.config.keys import keys, paths
from cuarl.config.kinds import kind_of
from cuarl.config.load import recorded, resolve
from cuarl.config.schema import ExperimentConfig
from cuarl.config.show import as_json
from cuarl.config.unions import UNIONS
from cuarl.errors import ConfigError
from cuarl.run.resume import differences


@pytest.fixture
def write(tmp_path):
    def write(text, name="mine.yaml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def refused(**arguments):
    with pytest.raises(ConfigError) as caught:
        resolve(**arguments)
    return caught.value


@pytest.mark.parametrize("name", UNIONS)
def test_every_option_of_every_record_has_a_sentence_a_flag_and_a_form_on_the_command_line(name):
    for type_ in UNIONS[name].types():
        record = UNIONS[name].record(type_)
        assert record.model_validate({"type": type_}).type == type_
        for inner, field in record.model_fields.items():
            if inner != "type":
                assert record.descriptions()[inner].strip().endswith("."), (type_, inner)
                kind_of(field)
                assert type_ in keys()[record.flag_name(type_, inner)].owners


def test_no_two_keys_share_a_flag():
    flags = [key.flag for key in keys().values()]
    assert len(flags) == len(set(flags))


@pytest.mark.parametrize(
    "text",
    ["env: {type: browser, contexts: 8}", "env:\n  type: browser\n  contexts: 8\n", "env: browser\nenv.contexts: 8\n"],
)
def test_a_file_a_flag_an_assignment_and_python_say_the_same(write, text):
    config = resolve(files=[write(text)]).config
    assert config == resolve(flags={"env": "browser", "browser_contexts": 8}).config
    assert config == resolve(sets=["env=browser", "env.contexts=8"]).config
    assert config == resolve(sets=["env={type: browser, contexts: 8}"]).config
    assert config == resolve(sets=["env.type=browser", "env.contexts=8"]).config
    assert config == ExperimentConfig(env={"type": "browser", "contexts": 8})
    assert config.env == UNIONS["env"].record("browser")(contexts=8)


def test_options_without_a_type_are_for_the_type_that_holds_in_the_end(write):
    below = write("env:\n  contexts: 3\n  scale: 2\n")
    found = resolve(files=[below, write("env: browser\n", "b.yaml")], sets=["env.contexts=5"])
    assert (found.config.env.contexts, found.config.env.scale) == (5, 2.0)
    assert found.sources["env"].endswith("b.yaml, line 1") and found.sources["env.scale"].endswith("mine.yaml, line 3")
    assert (found.sources["env.contexts"], found.sources["env.reset"]) == ("-s env.contexts", "default")


@pytest.mark.parametrize(
    ("arguments", "message", "where"),
    [
        ({"flags": {"browser_contexts": 3}}, "env.contexts has no effect with env sim: it is an option of browser",
         "--browser-contexts"),
        ({"sets": ["env=linux", "env.contexts=3"]}, "env.contexts has no effect with env linux", "-s env.contexts"),
        ({"preset": "linux", "flags": {"env": "browser"}}, "env.screen has no effect with env browser", "preset linux"),
        ({"sets": ["env=browser", "env.contxts=3"]}, 'unknown key "env.contxts" (did you mean "env.contexts"?)',
         "-s env.contxts"),
        ({"sets": ["env=brwser"]}, 'there is no environment "brwser" (did you mean "browser"?)', "-s env"),
        ({"sets": ["env=[browser]"]}, "neither a name nor a mapping", "-s env"),
        ({"sets": ["env={type: 5}"]}, 'there is no environment "5"', "-s env"),
        ({"sets": ["browser_contexts=3"]}, '"browser_contexts" is env.contexts now: env: {type: browser, contexts: …}',
         "-s browser_contexts"),
    ],
    ids=str,
)  # fmt: skip
def test_what_a_record_can_not_take_is_refused_with_its_place(arguments, message, where):
    error = refused(**arguments)
    assert message in error.what and (error.where == where or where in error.what)


def test_a_value_meant_for_another_type_never_becomes_this_ones(write):
    """Both have settle_ms: what is said of a desktop is no word about a browser."""
    path = write("env: {type: linux, settle_ms: 7}")
    assert "settle_ms has no effect with env browser" in refused(files=[path], flags={"env": "browser"}).what
    assert resolve(files=[path], flags={"env": "linux", "linux_settle_ms": 8}).config.env.settle_ms == 8


def test_what_another_type_has_anyway_is_no_error(write):
    path = write(as_json(resolve(flags={"env": "linux"}).config), "other.json")
    assert resolve(files=[path], flags={"env": "browser"}).config.env == ExperimentConfig(env="browser").env


def test_wrong_values_of_records_are_told_with_all_others():
    error = refused(sets=["env=browser", "env.contexts=0", "env.scale=9", "seed=-1"])
    assert error.what.startswith("3 values are wrong")
    assert "env.contexts must be greater than 0 (got 0) at -s env.contexts" in error.what
    with pytest.raises(ValidationError, match=r"contexts must be greater than 0 \(got 0\)"):
        ExperimentConfig(env={"type": "browser", "contexts": 0})


def test_lines_are_those_of_the_record_and_not_of_a_like_named_key(write):
    path = write("seed: 0\nenv:\n  type: gym\n  seed: 0\n  creates: 0\n")
    assert refused(files=[path]).where.endswith("line 5")
    toml = write('seed = 1\n[env]\ntype = "gym"\nseed = -1\n', "a.toml")
    assert refused(files=[toml]).where.endswith("a.toml, line 4")


FLAT = {
    "seed": 3,
    "env": "browser",
    "browser_contexts": 8,
    "browser_settle_ms": 100.0,
    "linux_screen": "640x480",
    "profile": "small",
}
"""As runs of earlier versions recorded it, with the options of all environments."""


def test_a_run_of_an_earlier_version_is_read_as_what_it_was(write):
    config = recorded(write(json.dumps(FLAT), "config.json"))
    assert config == ExperimentConfig(seed=3, env={"type": "browser", "contexts": 8})
    assert nested(config.model_dump(mode="json")) == config.model_dump(mode="json"), "what is nested stays so"
    assert nested({"profile": "tall"})["env"] == {"type": "sim", "profile": "tall"}


def test_a_file_of_ones_own_is_told_the_new_names(write):
    path = write(json.dumps(FLAT, indent=1), "mine.json")
    assert (
        f'"browser_contexts" is env.contexts now: env: {{type: browser, contexts: …}} at {path}, line 4'
        in refused(files=[path]).what
    )


def test_python_is_told_the_new_names():
    with pytest.raises(
        ValidationError, match=r'"browser_contexts" is env.contexts now: env: {type: browser, contexts: …}'
    ):
        ExperimentConfig(browser_contexts=8)
    with pytest.raises(ValidationError, match=r'"clip_high" is algorithm\.clip_high now'):
        ExperimentConfig(clip_high=0.3)


def test_runs_differ_in_options_and_types():
    one, other = ExperimentConfig(env={"type": "browser", "contexts": 8}), ExperimentConfig(env="browser")
    assert [(d.field, d.old, d.new) for d in differences(one, other)] == [("env.contexts", 8, 16)]
    assert ("env", "browser", "sim") in differences(one, ExperimentConfig())


def test_the_sources_name_every_path():
    found = resolve(preset="cua-rl")
    assert list(found.sources) == list(paths(found.config))
    assert found.sources["env.box_type"] == "preset cua-rl"


def test_options_are_read_without_what_the_backends_need():
    """Help imports all of them."""
    heavy = ["playwright", "Xlib", "gymnasium", "websockets", "torch", "adbutils", "httpx"]
    heavy += [f"cuarl.env.{name}.env" for name in backends.BACKENDS]
    modules = [backend.options for backend in backends.BACKENDS.values()]
    code = (
        "import importlib, sys\n"
        f"for name in {modules}:\n"
        "    importlib.import_module(name)\n"
        f"    print(name, [m for m in {heavy} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{name} []" for name in modules]
