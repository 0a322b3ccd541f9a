"""`ragbench dev`: the Dagster UI and daemon on this workspace."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from ragbench_dagster.commands.options import WorkspaceOption, open_workspace, say
from ragbench_dagster.errors import UserError
from ragbench_dagster.store import write_text


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


# `ragbench init`: a new workspace with the sample data.

NOT_SAMPLE = shutil.ignore_patterns("store", ".dagster", ".key", "__pycache__", "*.part")


def sample_folder() -> Path:
    """The sample workspace: packed into the wheel, or `data/` of a source checkout.

    Raises:
        UserError: neither is there.
    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "_sample", package.parent / "data"):
        if (folder / "ragbench.yaml").is_file():
            return folder
    raise UserError("the sample data is not part of this installation; install the wheel of ragbench-dagster again")


def init(
    folder: Annotated[Path, typer.Argument(help="Folder to make.")],
    github_actions: Annotated[
        bool, typer.Option("--github-actions", help="Also write .github/workflows/ragbench.yml.")
    ] = False,
) -> None:
    """Make a workspace: settings, sample logs, corpus, labels and calibration rows."""
    target = folder.expanduser()
    if target.exists() and (not target.is_dir() or any(target.iterdir())) and not github_actions:
        raise UserError(f"{target}: exists and is not an empty folder; name another")
    try:
        if not (target / "ragbench.yaml").exists():
            shutil.copytree(sample_folder(), target, ignore=NOT_SAMPLE, dirs_exist_ok=True)
    except OSError as fault:
        raise UserError(f"{target}: cannot be written ({fault.strerror or fault}); name another folder") from fault
    if github_actions:
        from ragbench_dagster.reporting.ci.workflow import github_workflow

        write_text(target / ".github" / "workflows" / "ragbench.yml", github_workflow())
    say(f"made {target}; next: ragbench run --workspace {target}")
    say(
        "margins to start with (docs/deciding.md): retrieval 0.08 / 0.05 / 0.03 with 200 / 700 / 2,000 examples, judged "
        f"0.10 / 0.08 / 0.05 with a strong judge; after the first night: ragbench doctor --workspace {target}"
    )
