"""Help that fits a screen, and the options that it leaves to ``--help-all``."""

import re
import subprocess
import sys

import pytest
import typer

from cuarl.cli.app import Commands, app, run
from cuarl.cli.help import MOST_NEEDED, SELDOM
from cuarl.config.keys import keys, keys_of
from cuarl.config.words import chosen

WITH_EXPERIMENT = ("train", "rollout", "eval", "serve", "serve-env")


@pytest.fixture
def help_of(capsys, monkeypatch):
    """The lines that a command's help prints, at 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")

    def help_of(*args):
        assert run(args) == 0
        return capsys.readouterr().out.splitlines()

    return help_of


def _flags(lines):
    """The long flags that stand at the beginning of an entry."""
    entries = [match[1] for line in lines if (match := re.match(r"  (?:-\w, )?(--[\w-]+)", line))]
    assert len(entries) == len(set(entries)), "an option stands twice"
    return set(entries)


@pytest.mark.parametrize("name", WITH_EXPERIMENT)
@pytest.mark.parametrize("terminal", [False, True])
def test_the_help_of_an_experiment_fits_a_screen(name, terminal, help_of, monkeypatch):
    monkeypatch.setattr(app, "rich_markup_mode", "rich" if terminal else None)
    lines = help_of(name, "--help")
    assert len(lines) <= 80
    assert max(map(len, lines)) <= 80 or name != "train"
    assert any(line.strip().startswith("cuarl ") for line in lines), "no example"


@pytest.mark.parametrize("name", WITH_EXPERIMENT)
def test_every_option_stands_in_the_full_help_once_and_the_short_one_is_a_part_of_it(name, help_of):
    root = typer.main.get_command(app)
    _, command, _ = Commands.resolve_command(root, typer.Context(root), [name])
    options = {flag for param in command.params for flag in param.opts if flag.startswith("--")}
    every, needed = _flags(help_of(name, "--help-all")), _flags(help_of(name, "--help"))
    assert every == options | {"--help"}
    assert needed < every


def test_what_the_short_help_names_exists():
    assert set(MOST_NEEDED) <= set(keys())
    root = typer.main.get_command(app)
    own = set()
    for name in WITH_EXPERIMENT:
        _, command, _ = Commands.resolve_command(root, typer.Context(root), [name])
        own |= {param.name for param in command.params}
    assert own >= SELDOM
    assert not SELDOM & set(keys())


@pytest.mark.parametrize("words", [["--env", "browser", "--help"], ["--help", "--env=browser"]])
@pytest.mark.parametrize("name", ["train", "rollout", "eval"])
def test_the_help_of_an_environment_comes_along(name, words, help_of):
    flags = _flags(help_of(name, *words))
    assert {key.flag for key in keys_of("env", "browser")} <= flags
    assert "--linux-screen" not in flags
    assert flags > _flags(help_of(name, "--help"))


def test_the_help_of_a_trainer_and_of_an_algorithm_comes_along(help_of):
    lines = help_of("train", "--trainer", "tinker", "--algorithm", "ppo", "--help")
    assert {"--tinker-loss", "--gae-lambda", "--clip-low"} <= _flags(lines)
    assert not {"--gigpo-weight", "--sft-runs"} & _flags(lines)
    assert "--gigpo-weight" in _flags(help_of("train", "--algorithm=gigpo", "-h"))
    assert {"--rescore", "--served-model-name"} <= _flags(help_of("rollout", "--policy", "openai", "--help"))


def test_words_that_name_nothing_add_nothing():
    assert chosen(["--env", "nowhere", "--trainer", "away", "--tasks", "browser"]) == frozenset()
    assert chosen(["--env"]) == frozenset()


def test_a_completed_option_comes_with_its_help():
    root = typer.main.get_command(app)
    _, command, _ = Commands.resolve_command(root, typer.Context(root), ["train"])
    found = command.shell_complete(typer.Context(command), "--groups-per")
    assert [(one.value, one.help) for one in found] == [
        ("--groups-per-batch", "Groups that one training step learns from. (default: 6)")
    ]


def test_no_command_reads_descriptions_unless_it_shows_them():
    code = (
        "import typer\n"
        "from cuarl.cli.app import Commands, app\n"
        "from cuarl.descriptions import _below\n"
        "root = typer.main.get_command(app)\n"
        "context = typer.Context(root)\n"
        "_, command, _ = Commands.resolve_command(root, context, ['train'])\n"
        "command.make_context('train', ['--max-steps', '3'], parent=context)\n"
        "read = _below.cache_info().currsize\n"
        "command.get_help(typer.Context(command, parent=context))\n"
        "print(read, _below.cache_info().currsize > 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "True"]
