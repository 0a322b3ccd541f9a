"""report[D]: the night on one self-contained HTML page, and an index of all nights.

Store files become a view (`view.py`, plain frozen data), the view becomes HTML (`page.html.j2`, everything escaped).
The page makes no network request, its Content-Security-Policy allows none, and the same night gives the same bytes.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench_dagster.store import Workspace, write_text

if TYPE_CHECKING:
    from ragbench_dagster.reporting.report.page_data import NightView

MOST_BYTES = 1_950_000  # of the page: it is opened on phones, and attached to CI runs


def write_report(ws: Workspace, day: str) -> Path:
    """Write report.html of the night, and the index of all nights beside it.

    Returns:
        The page's path: store/nights/DAY/report.html. The index is store/nights/index.html.

    Raises:
        UserError: no such night.
    """
    from ragbench_dagster.reporting.report.compose import night_view
    from ragbench_dagster.reporting.report.night_index import index_view
    from ragbench_dagster.reporting.report.render import render

    path = ws.night(day) / "report.html"
    write_text(path, page(night_view(ws, day)))
    write_text(ws.night(day).parent / "index.html", render("index.html.j2", index=index_view(ws)))
    return path


def page(view: NightView) -> str:
    """The page as HTML, under 2 MB: what the budgets of its parts did not foresee is taken from its cases."""
    from ragbench_dagster.reporting.report.render import render

    done = render("page.html.j2", night=view)
    while len(done.encode("utf-8", "replace")) > MOST_BYTES and view.cases.rows:
        rows = view.cases.rows[: len(view.cases.rows) * 4 // 5]
        view = dataclasses.replace(view, cases=dataclasses.replace(view.cases, rows=rows))
        done = render("page.html.j2", night=view)
    return done
