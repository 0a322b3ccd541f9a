"""report[D]: the night on one self-contained HTML page, and an index of all nights.

Store files become a view (`view.py`, plain frozen data), the view becomes HTML (`page.html.j2`, everything escaped).
The page makes no network request, its Content-Security-Policy allows none, and the same night gives the same bytes.
"""

from __future__ import annotations

from pathlib import Path

from ragbench_dagster.store import Workspace, write_text


def write_report(ws: Workspace, day: str) -> Path:
    """Write report.html of the night, and the index of all nights beside it.

    Returns:
        The page's path: store/nights/DAY/report.html. The index is store/nights/index.html.

    Raises:
        UserError: no such night.
    """
    from ragbench_dagster.reporting.report.build import night_view
    from ragbench_dagster.reporting.report.index import index_view
    from ragbench_dagster.reporting.report.render import render

    path = ws.night(day) / "report.html"
    write_text(path, render("page.html.j2", night=night_view(ws, day)))
    write_text(ws.night(day).parent / "index.html", render("index.html.j2", index=index_view(ws)))
    return path
