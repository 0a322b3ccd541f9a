"""The `ragbench` command: names and wiring only. Bodies are in `commands/`, imported when they are needed."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from pathlib import Path

import typer

from ragbench_dagster.commands import doctor, judge, label, releases, removal, run, setup, stages, stored
from ragbench_dagster.commands.options import complain
from ragbench_dagster.errors import Interrupted, RunFailed, UserError
from ragbench_dagster.masking import guard_logs

app = typer.Typer(
    name="ragbench",
    help="A nightly benchmark from the questions people really ask a RAG system.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("init")(setup.init)
app.command("run")(run.run)
app.command("dev")(setup.dev)
app.command("gate")(run.gate)
app.command("accept")(run.accept)
app.command("report")(stored.report)
app.command("leaderboard")(stored.leaderboard)
app.command("failures")(stored.failures)
app.command("history")(stored.history)
app.command("estimate")(judge.estimate)
app.command("reproduce")(judge.reproduce)
app.command("calibrate")(judge.calibrate)
app.command("doctor")(doctor.doctor)
app.command("forget")(removal.forget)
app.command("prune")(removal.prune)
app.add_typer(releases.app, name="releases")
app.add_typer(label.app, name="label")
app.add_typer(doctor.app, name="logs")
app.add_typer(stages.app, name="stage")


def main() -> None:
    """Entry point: every user fault is one line on stderr and exit code 2."""
    os.umask(0o077)  # what is written here is for this user alone, whichever library writes it
    guard_logs()
    for stream in (sys.stdout, sys.stderr):
        # Questions hold anything: a lone surrogate or a C locale must not end a command.
        getattr(stream, "reconfigure", lambda **_: None)(encoding="utf-8", errors="replace")
    try:
        app()
    except UserError as fault:
        complain(str(fault))
        sys.exit(2)
    except (Interrupted, KeyboardInterrupt) as fault:
        complain(str(fault) or "interrupted; everything finished is kept")
        sys.exit(130)
    except BrokenPipeError:
        # The reader of a pipe went away (`| head`): not an error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except Exception as fault:
        if os.environ.get("RAGBENCH_TRACEBACK"):
            raise
        # The message may quote user text, and exit code 1 is the gate's word: a fault of ours is neither.
        frame = traceback.extract_tb(fault.__traceback__)[-1]
        where = f"{type(fault).__name__} at {Path(frame.filename).name}:{frame.lineno}"
        said = str(fault) if isinstance(fault, RunFailed) else where
        complain(f"internal error: {said}; RAGBENCH_TRACEBACK=1 shows all of it")
        sys.exit(2)


if __name__ == "__main__":
    main()
