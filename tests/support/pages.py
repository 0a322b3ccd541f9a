"""What the tests of pages and trackers share: the night maker of tests/reporting, and a finished night."""

from pathlib import Path

from ragbench_dagster.reporting.gate.decide import decide
from ragbench_dagster.reporting.leaderboard import rank
from ragbench_dagster.reporting.report import write_report
from ragbench_dagster.reporting.summary import summarise
from ragbench_dagster.store import Workspace
from tests.support.night_maker import NightMaker, maker_in

__all__ = ["NightMaker", "finish", "maker_in"]


def finish(ws: Workspace, day: str) -> Path:
    """Summary, leaderboard, gate and page of a night that has its scores."""
    summarise(ws, day)
    rank(ws, day)
    decide(ws, day)
    return write_report(ws, day)
