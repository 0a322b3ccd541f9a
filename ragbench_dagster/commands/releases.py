"""`ragbench releases`: list, show, diff, export."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragbench_dagster.commands.options import JsonOption, WorkspaceOption, cell, open_workspace, print_json, print_table
from ragbench_dagster.errors import UserError

app = typer.Typer(help="Frozen dataset versions.", no_args_is_help=True)
ReleaseArgument = Annotated[str, typer.Argument(help="Release id, or a day YYYY-MM-DD.")]


def _find(ws, name: str):  # type: ignore[no-untyped-def]
    """The release of an id or of a day."""
    from ragbench_dagster.dataset.release import load_release, resolve

    if len(name) == 10:
        found = resolve(ws, name)
        if found is None:
            raise UserError(f"{name}: no release serves this day; see: ragbench releases list")
        return found
    return load_release(ws, name)


@app.command("list")
def list_(workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """All releases with their sizes."""
    from ragbench_dagster.dataset.release import list_releases

    rows = list_releases(open_workspace(workspace))
    if as_json:
        print_json(rows)
        return
    header = ["id", "day", "examples", "labelled", "requests"]
    print_table("Releases", header, [[r.get(h) for h in header] for r in rows])


@app.command()
def show(release: ReleaseArgument, workspace: WorkspaceOption = None, as_json: JsonOption = False) -> None:
    """A release's manifest; its hash is verified first."""
    found = _find(open_workspace(workspace), release)
    if as_json:
        print_json({"id": found.id, **found.manifest})
        return
    flat = [[k, v if isinstance(v, int | float | str) else _brief(v)] for k, v in sorted(found.manifest.items())]
    print_table(f"Release {found.id} (verified)", ["key", "value"], flat)


def _brief(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{k}: {cell(v)}" for k, v in list(value.items())[:20])
    if isinstance(value, list):
        return f"{len(value)}: " + ", ".join(cell(v) for v in value[:10]) if value else "none"
    return cell(value)


@app.command()
def diff(
    a: ReleaseArgument, b: ReleaseArgument, workspace: WorkspaceOption = None, as_json: JsonOption = False
) -> None:
    """What changed from A to B: added, removed, re-labelled, re-weighted, and the shift by category."""
    from ragbench_dagster.dataset.diff import diff_releases

    ws = open_workspace(workspace)
    found = diff_releases(_find(ws, a), _find(ws, b))
    if as_json:
        print_json(found)
        return
    counts = [[k, len(v)] for k, v in found.items() if isinstance(v, list)]
    print_table(f"{a} -> {b}", ["change", "examples"], counts)
    for kind, names in found.items():
        if isinstance(names, list) and names:
            print(f"{kind}: " + ", ".join(cell(n if isinstance(n, str) else n.get("example_id")) for n in names[:20]))
    shift = found.get("categories", {})
    print_table("Categories", ["category", "before", "after"], [[c, v["a"], v["b"]] for c, v in sorted(shift.items())])


@app.command()
def export(
    release: ReleaseArgument,
    to: Annotated[Path, typer.Option("--to", help="Folder to write to.")],
    workspace: WorkspaceOption = None,
    form: Annotated[str, typer.Option("--format", help="jsonl, parquet, csv, hf, ragas or llama_index.")] = "jsonl",
    as_json: JsonOption = False,
) -> None:
    """Write a release for other tools."""
    from ragbench_dagster.dataset.export import export_release, register

    ws = open_workspace(workspace)
    found = _find(ws, release)
    path = export_release(found, to, form)
    register(ws, "release", path, found.id, form)
    if as_json:
        print_json({"path": str(path)})
    else:
        print(path)
