"""`ragbench dev`: the Dagster UI and daemon on this workspace."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from ragbench_dagster.commands.common import WorkspaceOption, open_workspace


def dev(
    workspace: WorkspaceOption = None,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Port on 127.0.0.1; 0 picks a free one.")
    ] = 3000,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Only show: no run can be started, no schedule or sensor runs.")
    ] = False,
) -> None:
    """Dagster UI and daemon on this workspace, on the loopback address only, for whoever has the printed link."""
    from ragbench_dagster.orchestration.dev import serve

    sys.exit(serve(open_workspace(workspace), port, read_only))
