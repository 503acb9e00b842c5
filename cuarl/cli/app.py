"""The root of the command line: options before the command, errors, exit codes, interrupts.

``main`` is the only place, next to the episode runner, that catches everything: it turns an exception into three lines
and an exit code.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, NoReturn, TextIO

import typer

from cuarl import __version__, garbage
from cuarl.cli.lazy import Entry, LazyGroup
from cuarl.cli.usage import UsageError, as_config_error, is_help
from cuarl.errors import ConfigError, CuarlError
from cuarl.objects import own_frame
from cuarl.safe_text import loggable, remember_environment
from cuarl.terminal.output import has_colour, is_terminal
from cuarl.terminal.state import STATE, Display
from cuarl.workflow import signals

INTERRUPTED = 130
VALUE_OPTIONS = ("--log-level", "--env-file", "--display")
FLAGS = ("--debug", "--quiet", "-q", "--verbose", "-v", "-vv")

logger = logging.getLogger(__name__)


class Commands(LazyGroup):
    """The commands, in the order in which data flows through them."""

    entries = {  # noqa: RUF012 (declared a ClassVar by the base)
        "doctor": Entry("cuarl.cli.commands.doctor", "Say what works here, and what to do about the rest."),
        "tasks": Entry("cuarl.cli.commands.tasks", "List, filter, show and validate tasks."),
        "rollout": Entry("cuarl.cli.commands.rollout", "Collect episodes, show them, and verify what was recorded."),
        "train": Entry("cuarl.cli.commands.train", "Train a policy, and evaluate it before and after."),
        "eval": Entry("cuarl.cli.commands.eval", "Evaluate and compare checkpoints, endpoints and baselines."),
        "serve": Entry("cuarl.cli.commands.serve", "Serve a policy to any agent, and record what it does."),
        "serve-env": Entry("cuarl.cli.commands.serve_env", "Serve environments to any learner that speaks OpenEnv."),
        "local": Entry("cuarl.cli.commands.local", "Serve stand-ins for GBox, gyms, Kubernetes and Tinker."),
        "model": Entry("cuarl.cli.commands.model", "The shipped base, and checkpoints made ready for others."),
        "runs": Entry("cuarl.cli.commands.runs", "List runs, look at one, remove some."),
        "episodes": Entry(
            "cuarl.cli.commands.episodes", "List the episodes of a run: the failed ones, the worst first."
        ),
        "db": Entry("cuarl.cli.commands.db", "Look after the database of runs and trajectories."),
        "monitor": Entry("cuarl.cli.commands.monitor", "Watch runs."),
        "sessions": Entry(
            "cuarl.cli.commands.sessions", "List and end browsers, displays, boxes and pods left behind."
        ),
        "config": Entry("cuarl.cli.commands.config", "Show configurations, their fields and the shipped presets."),
    }


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich" if is_terminal(sys.stdout) else None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="""\b
Exit codes:
  0    done, an empty listing included
  1    failed while working
  2    wrong usage or configuration; nothing was started
  3    it ran, but the asked-for bar was not met
  4    something must be installed, started or configured first
  130  interrupted; cleaned up, and can be resumed

\b
Start with:
  cuarl doctor
  cuarl train --tasks settings --difficulty easy
  cuarl monitor tail""",
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"cuarl {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors and results only.")] = False,
    verbose: Annotated[
        int, typer.Option("--verbose", "-v", count=True, show_default=False, help="Say more; twice for everything.")
    ] = 0,
    log_level: Annotated[
        str | None, typer.Option(envvar="CUARL_LOG_LEVEL", help="debug, info, warning or error; wins over -q and -v.")
    ] = None,
    display: Annotated[Display, typer.Option(help="How progress is shown; auto is rich on a terminal.")] = "auto",
    env_file: Annotated[
        Path | None, typer.Option(help="File of environment variables, instead of the .env found upwards.")
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Print the traceback of an error.")] = False,
) -> None:
    """Train computer-use agents with reinforcement learning.

    These options may also stand after the command.
    """
    from cuarl.terminal.logs import configure, forget

    forget()
    STATE.quiet, STATE.display, STATE.env_file, STATE.debug = quiet, display, env_file, debug
    STATE.log_level = log_level or ("error" if quiet else ("info", "debug")[min(verbose, 2) - 1] if verbose else None)
    configure(STATE.log_level or "warning")
    if quiet or (display != "rich" and not is_terminal(sys.stderr)):
        # the model libraries' own bars, which would fill a log file; they read this when they are imported
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    # a stream that was closed by the caller is None, which half of all code does not expect
    sys.stdout, sys.stderr = sys.stdout or _nowhere(), sys.stderr or _nowhere()
    for stream in (sys.stdout, sys.stderr):  # where the locale is not UTF-8, a goal's letters are shown as escapes
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    remember_environment()
    garbage.look_rarely()
    # read when torch is loaded; threads that wait by spinning stall each other as soon as anything else runs here
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    signals.install()
    code = run(hoisted(sys.argv[1:] if args is None else args))
    signals.leave()
    sys.exit(_flushed(code))


def run(args: Sequence[str]) -> int:
    """Run one command and return its exit code; every error has been printed."""
    try:
        _require_text(args)
        code = typer.main.get_command(app)(args, prog_name="cuarl", standalone_mode=False)
        if isinstance(code, int):
            raise SystemExit(code)
        return 0
    except SystemExit as exit_:
        code = exit_.code if isinstance(exit_.code, int) else int(bool(exit_.code))
        if code == INTERRUPTED and "LOCAL_RANK" not in os.environ:  # one of several speaks: their launcher
            print("interrupted", file=sys.stderr)
        return code
    except UsageError as error:
        if is_help(error):
            print(error, file=sys.stderr)
            return 2
        told = as_config_error(error, args)
        _show(told.what, told.where, told.hint, error)
        return told.exit_code
    except CuarlError as error:
        _show(error.what, error.where, error.hint, error)
        return error.exit_code
    except OSError as error:
        _show(error.strerror or str(error), error.filename, _room(error), error)
    except Exception as error:
        hint = None if STATE.debug else "run it again with --debug to see where"
        _show(f"unexpected {type(error).__name__}: {error}", own_frame(error), hint, error)
    return 1


def _require_text(args: Sequence[str]) -> None:
    """Names and values of options are stored, and no file or database takes bytes that are not text."""
    for arg in args:
        if any("\ud800" <= character <= "\udfff" for character in arg):
            raise ConfigError(
                "this argument is not UTF-8 text", where=arg, hint="rename the file, or set a UTF-8 locale"
            )


def hoisted(args: Sequence[str]) -> list[str]:
    """Move the root's options to the front, so that they may stand after the command (but not after ``--``)."""
    front: list[str] = []
    rest: list[str] = []
    queue = list(args)
    while queue:
        arg = queue.pop(0)
        if arg == "--":
            rest += [arg, *queue]
            break
        if arg in FLAGS or arg.startswith(tuple(f"{name}=" for name in VALUE_OPTIONS)):
            front.append(arg)
        elif arg in VALUE_OPTIONS:
            front += [arg, *queue[:1]]
            del queue[:1]
        else:
            rest.append(arg)
    return front + rest


def _show(what: str, where: object, hint: str | None, error: BaseException) -> None:
    if STATE.debug:
        print(loggable("".join(traceback.format_exception(error))), file=sys.stderr, end="")
    mark = "\x1b[1;31merror:\x1b[0m" if has_colour(sys.stderr) else "error:"
    lines = [what]
    lines += [f"  at: {where}"] if where else []
    lines += [f"  fix: {hint}"] if hint else []
    lines += [f"  {note}" for note in getattr(error, "__notes__", [])]
    print(mark, loggable("\n".join(lines)), file=sys.stderr)


def _room(error: OSError) -> str | None:
    """What shows how full the disk is, where that was the fault."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return f"df -h {Path(os.fsdecode(error.filename)).parent}" if full and error.filename else None


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def _flushed(code: int) -> int:
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        # the reader has gone; without this the interpreter complains once more at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code
