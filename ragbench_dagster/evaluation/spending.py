"""One cap for one run: `judge.budget_usd`, or `--max-usd`, over all that a command causes.

A night's answers, its calibration, its pairs and the engines that use the judge's LLM spend from one budget, which
begins at what the ledger says the run has spent already. A run that was killed, or that its budget stopped, goes on
under its name when it is started again; one that was finished is over. What calls cost belongs in `judge/budget.py`.
"""

from __future__ import annotations

from functools import partial

from ragbench_dagster.evaluation.judge import budget as budgets
from ragbench_dagster.evaluation.ledger import Ledger
from ragbench_dagster.store import Workspace


def enter(ws: Workspace, run: str, ledger: Ledger | None = None) -> None:
    """What is spent in this workspace from now on is spent by `run`: a night's day, or a command's name.

    Args:
        ws: the workspace.
        run: its name; the rows it pays for have it as their `day`.
        ledger: the workspace's, where it is open.

    Raises:
        UserError: the ledger cannot be read or written.
    """
    place = str(ws.root)
    if (place, run) not in budgets.open_budgets:
        if ledger is None:
            with Ledger.open(ws) as opened:
                spent = opened.begin_run(run)
        else:
            spent = ledger.begin_run(run)
        limit = ws.settings.judge.budget_usd
        budgets.open_budgets[place, run] = budgets.Budget(limit, spent, note=partial(_note, ws, run))
    budgets.paying_runs[place] = run


def finish(ws: Workspace, run: str) -> None:
    """The run has spent what it will; another of its name begins anew, unless its budget stopped this one.

    Raises:
        UserError: the ledger cannot be written.
    """
    place = str(ws.root)
    if budgets.paying_runs.get(place) == run:
        del budgets.paying_runs[place]
    known = budgets.open_budgets.pop((place, run), None)
    # A night that was killed after its last call is finished by the next run, which spends nothing.
    if known is not None or ws.settings.judge.provider != "embedded":
        with Ledger.open(ws) as ledger:
            ledger.finish_run(run)


def _note(ws: Workspace, run: str, usd: float) -> None:
    # A connection of its own: an engine calls from whatever thread it likes, and a call takes far longer.
    with Ledger.open(ws) as ledger:
        ledger.add_cost(run, usd)
