import io
import logging
import os
import sys
import warnings
from typing import Annotated

import pytest
import stamina
import typer

from cuarl import errors, safe_text
from cuarl.cli.app import FLAGS, VALUE_OPTIONS, Commands, hoisted, run
from cuarl.errors import BarMissed, ConfigError, CuarlError, PrerequisiteError
from cuarl.terminal.state import STATE


def failing(error):
    def command() -> None:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (CuarlError("x"), 1),
        (ConfigError("x"), 2),
        (BarMissed("x"), 3),
        (PrerequisiteError("x"), 4),
        (ValueError("x"), 1),
        (OSError(28, "No space left on device"), 1),
        (KeyboardInterrupt(), 130),
        (typer.Exit(3), 3),
    ],
    ids=repr,
)
def test_every_error_has_its_exit_code(add_command, error, code):
    add_command("boom", failing(error))
    assert run(["boom"]) == code


def test_every_class_of_error_documents_a_code_of_the_table():
    classes = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, CuarlError)]
    assert len(classes) > 10
    assert {kind.exit_code for kind in classes} == {1, 2, 3, 4}


def test_an_error_is_three_lines_on_stderr(add_command, capsys):
    add_command("boom", failing(ConfigError('unknown key "x"', where="a.yaml, line 2", hint="cuarl config show")))
    run(["boom"])
    out, err = capsys.readouterr()
    assert out == ""
    assert err == 'error: unknown key "x"\n  at: a.yaml, line 2\n  fix: cuarl config show\n'


def test_notes_of_an_error_are_printed(add_command, capsys):
    error = CuarlError("x")
    error.add_note("log: runs/a/logs/attempt-001/cuarl.log")
    add_command("boom", failing(error))
    run(["boom"])
    assert "  log: runs/a/logs/attempt-001/cuarl.log\n" in capsys.readouterr().err


def test_unexpected_errors_show_no_traceback_unless_asked(add_command, capsys):
    add_command("boom", failing(ZeroDivisionError("division by zero")))
    assert run(["boom"]) == 1
    brief = capsys.readouterr().err
    assert brief.startswith("error: unexpected ZeroDivisionError: division by zero")
    assert "Traceback" not in brief and "--debug" in brief
    run(["--debug", "boom"])
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_errors_of_the_operating_system_name_the_file(add_command, capsys):
    add_command("boom", failing(OSError(28, "No space left on device", "/full/disk")))
    run(["boom"])
    assert capsys.readouterr().err == "error: No space left on device\n  at: /full/disk\n  fix: df -h /full\n"


def test_secrets_are_masked_in_messages_and_tracebacks(add_command, capsys, monkeypatch):
    monkeypatch.setattr(safe_text, "_secrets", set())
    safe_text.remember(["canary-9f8e7d"])
    add_command("boom", failing(ValueError("refused canary-9f8e7d at postgres://u:canary2pass@h/d")))
    run(["--debug", "boom"])
    out, err = capsys.readouterr()
    assert "canary" not in out + err
    assert "***7d" in err


def test_an_interrupt_says_so(add_command, capsys):
    add_command("boom", failing(KeyboardInterrupt()))
    run(["boom"])
    assert capsys.readouterr().err.strip() == "interrupted"


@pytest.mark.parametrize(
    ("given", "moved"),
    [
        (["train", "--debug", "-q"], ["--debug", "-q", "train"]),
        (["train", "--log-level", "info", "x"], ["--log-level", "info", "train", "x"]),
        (["train", "--log-level=info"], ["--log-level=info", "train"]),
        (["train", "--", "--debug"], ["train", "--", "--debug"]),
        (["train", "--env-file"], ["--env-file", "train"]),
        (["-v", "train", "--env", "sim"], ["-v", "train", "--env", "sim"]),
        ([], []),
    ],
)
def test_root_options_may_stand_after_the_command(given, moved):
    assert hoisted(given) == moved


def test_no_command_takes_an_option_of_the_root():
    for name in Commands.entries:
        command = Commands(name="root", no_args_is_help=True)._load(name)
        for one in [command, *getattr(command, "commands", {}).values()]:
            taken = {flag for parameter in one.params for flag in (*parameter.opts, *parameter.secondary_opts)}
            assert not taken & {*FLAGS, *VALUE_OPTIONS}, (name, one.name)


@pytest.mark.parametrize(
    ("args", "shown"),
    [
        ([], {"warning", "error"}),
        (["-q"], {"error"}),
        (["-v"], {"info", "warning", "error"}),
        (["-vv"], {"debug", "info", "warning", "error"}),
        (["-q", "--log-level", "info"], {"info", "warning", "error"}),
    ],
)
def test_levels_are_shown_as_asked(add_command, capsys, args, shown):
    def speak() -> None:
        for level in ("debug", "info", "warning", "error"):
            getattr(logging.getLogger("cuarl.test"), level)("text of %s", level)

    add_command("speak", speak)
    run([*args, "speak"])
    out, err = capsys.readouterr()
    assert out == ""
    assert {line.split(":")[0] for line in err.splitlines()} == shown


def test_the_level_may_come_from_the_environment_and_is_checked(add_command, capsys, monkeypatch):
    add_command("quiet", lambda: None)
    monkeypatch.setenv("CUARL_LOG_LEVEL", "loud")
    assert run(["quiet"]) == 2
    assert 'unknown log level "loud"' in capsys.readouterr().err


def test_the_level_may_come_from_dotenv(add_command, tmp_path):
    from cuarl.terminal.state import load_settings

    (tmp_path / ".env").write_text("CUARL_LOG_LEVEL=error\n")
    add_command("look", lambda: load_settings() and None)
    assert run(["look"]) == 0
    handler = next(handler for handler in logging.getLogger().handlers if handler.name == "stderr")
    assert handler.level == logging.ERROR


def test_warnings_of_python_go_to_stderr(add_command, capsys):
    def warn() -> None:
        warnings.warn("old thing", UserWarning, stacklevel=1)

    add_command("warn", warn)
    run(["warn"])
    out, err = capsys.readouterr()
    assert out == "" and "old thing" in err


@pytest.mark.parametrize(("args", "shown"), [([], False), (["-v"], True)])
def test_what_libraries_will_change_some_day_is_told_on_request(add_command, capsys, args, shown):
    def warn() -> None:
        warnings.warn("will go", FutureWarning, stacklevel=1)

    add_command("warn", warn)
    run([*args, "warn"])
    assert ("will go" in capsys.readouterr().err) == shown


@pytest.mark.parametrize(("args", "shown"), [([], False), (["-v"], False), (["-vv"], True)])
def test_that_a_request_is_sent_again_is_told_on_request(add_command, capsys, args, shown):
    def insist() -> None:
        with stamina.set_testing(True, attempts=2):
            for attempt in stamina.retry_context(on=ValueError):
                with attempt:
                    if attempt.num == 1:
                        raise ValueError

    add_command("insist", insist)
    run([*args, "insist"])
    assert ("retry_scheduled" in capsys.readouterr().err) == shown


@pytest.mark.parametrize(("args", "bars"), [([], False), (["--display", "rich"], True), (["-q"], False)])
def test_bars_of_libraries_stay_out_of_log_files(add_command, monkeypatch, args, bars):
    monkeypatch.delenv("HF_HUB_DISABLE_PROGRESS_BARS", raising=False)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    add_command("look", lambda: None)
    run([*args, "look"])
    assert ("HF_HUB_DISABLE_PROGRESS_BARS" not in os.environ) == bars


def test_mistyped_commands_and_options_are_suggested(capsys):
    assert run(["confg"]) == 2
    assert "Did you mean 'config'" in capsys.readouterr().err
    assert run(["config", "show", "--presset", "x"]) == 2
    assert "no such option" in capsys.readouterr().err


def test_no_arguments_print_the_help(capsys):
    assert run([]) == 2
    assert "Exit codes:" in "".join(capsys.readouterr())


def test_help_in_a_pipe_is_plain(capsys):
    run(["--help"])
    out = capsys.readouterr().out
    assert out.isascii() and "\x1b" not in out
    assert out.index("  doctor ") < out.index("  monitor ") < out.index("  config ")
    assert "..." not in out.partition("Commands:")[2], "a summary is cut off"


def leaves_of(command):
    """A command, or those of a group and of the groups in it."""
    inner = getattr(command, "commands", {}).values()
    return [leaf for one in inner for leaf in leaves_of(one)] or [command]


@pytest.mark.parametrize("name", Commands.entries)
def test_every_command_has_help_and_an_example(name, capsys):
    command = Commands(name="root", no_args_is_help=True)._load(name)
    for leaf in leaves_of(command):
        assert (leaf.help or "").strip(), leaf.name
        assert "Example" in (leaf.epilog or ""), f"{name} {leaf.name} has no example"
    assert run([name, "--help"]) == 0
    capsys.readouterr()


def test_quiet_state_is_known_to_commands(add_command):
    seen = []

    def look(x: Annotated[int, typer.Option()] = 0) -> None:
        seen.append((STATE.quiet, STATE.display, x))

    add_command("look", look)
    run(["--quiet", "--display", "plain", "look", "--x", "3"])
    assert seen == [(True, "plain", 3)]


@pytest.mark.parametrize("group", ["config", "db", "local", "model", "monitor", "runs", "sessions", "tasks"])
def test_a_group_without_a_command_shows_its_help(capsys, group):
    assert run([group]) == 2
    said = capsys.readouterr()
    assert "Usage: cuarl" in said.err and "error" not in said.err and "Commands" in said.err
    start = [line.split() for line in said.err.partition("Start with:")[2].splitlines() if line.strip()]
    assert len(start) == 2 and all(words[:2] == ["cuarl", group] for words in start)
