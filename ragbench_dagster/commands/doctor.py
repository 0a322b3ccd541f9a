"""`ragbench doctor`: what is wrong or missing in a workspace, one line each."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragbench_dagster.commands.options import (
    JsonOption,
    WorkspaceOption,
    complain,
    open_workspace,
    print_json,
    print_table,
    say,
)
from ragbench_dagster.commands.repair import repair
from ragbench_dagster.errors import UserError
from ragbench_dagster.store import Workspace, read_json

if TYPE_CHECKING:
    from ragbench_dagster.traffic.preview import Shape

Finding = tuple[str, str, str]  # error | warning | ok, where, one line


def doctor(
    workspace: WorkspaceOption = None,
    mend: Annotated[
        bool, typer.Option("--repair", help="First mend what can be mended, and say what was done.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Missing days, unreadable files, unverified releases, labels that fit nothing, the ledger's disk. Exit 2 on errors."""
    ws = open_workspace(workspace)
    mended = repair(ws) if mend else []
    rows = mended + list(
        {line: (level, where, line) for part in PARTS for level, where, line in _ask(ws, part)}.values()
    )
    if as_json:
        print_json([{"level": level, "where": where, "line": line} for level, where, line in rows])
    else:
        print_table(f"Workspace {ws.root.name}", ["level", "where", "finding"], rows)
    errors = [f"{where}: {line}" for level, where, line in rows if level == "error"]
    if errors:
        complain(f"{len(errors)} errors; the first: {errors[0]}")
        sys.exit(2)


def _ask(ws: Workspace, part: Callable[[Workspace], Iterator[Finding]]) -> list[Finding]:
    try:
        return list(part(ws))
    except UserError as fault:
        return [("error", part.__name__, str(fault))]


def logs(ws: Workspace) -> Iterator[Finding]:
    from ragbench_dagster.orchestration.partitions import today
    from ragbench_dagster.traffic.scan import scan_logs, stale_days

    index = scan_logs(ws)
    past = [d for d in index.days if d < today()]
    yield (
        "ok",
        "logs",
        f"{len(index.files)} files, {len(index.days)} days" + (f", {past[0]} to {past[-1]}" if past else ""),
    )
    if not index.days:
        first = f"; the first bad line: {index.first_bad}" if index.first_bad else ""
        yield "error", "logs", f"{ws.settings.traffic.source}: no log lines found{first}"
        return
    if index.ignored:
        yield "warning", "logs", f"{index.ignored} files of an unknown kind are not read"
    if not past:
        yield (
            "error",
            "logs",
            f"every log line lies on or after today ({today()} UTC by this machine's clock); check the clock",
        )
        return
    future = [d for d in index.days if d >= today()]
    if future:
        yield "warning", "logs", f"{len(future)} days lie on or after today ({today()} UTC); they are not run yet"
    gaps = _gaps(past)
    if gaps:
        yield "warning", "logs", f"{len(gaps)} days without log lines: {', '.join(gaps[:5])}"
    stale = stale_days(ws, index, past[-1])
    if stale:
        yield "warning", "store", f"{len(stale)} days are missing or older than their logs; ragbench run catches up"
    said: dict[str, list[str]] = {}
    for day in past:
        for line in (read_json(ws.traffic(day) / "facts.json") or {}).get("warnings", []):
            said.setdefault(line.lstrip("0123456789, "), []).append(day)
    for line, days in said.items():
        yield "warning", "logs", f"{line} ({len(days)} days, the first is {days[0]})"
    from ragbench_dagster.traffic.privacy import findings

    for line in findings(ws, past):
        yield "error" if "not read" in line else "warning", "logs", line
    bad = sum((read_json(p) or {}).get("quarantined", 0) for p in (ws.store / "traffic").glob("*/facts.json"))
    if bad:
        yield "warning", "quarantine", f"{bad} bad lines; see store/traffic/*/quarantine.parquet"


def _gaps(days: list[str]) -> list[str]:
    from datetime import date, timedelta

    have, day, found = set(days), date.fromisoformat(days[0]), []
    while day.isoformat() < days[-1]:
        if day.isoformat() not in have:
            found.append(day.isoformat())
        day += timedelta(days=1)
    return found


def fields(ws: Workspace) -> Iterator[Finding]:
    """What the first lines of the log files are read as: only what is odd is told here."""
    from ragbench_dagster.traffic.preview import preview

    for shape in preview(ws).shapes:
        where = f"{shape.files[0]}" + (f" and {len(shape.files) - 1} more" if len(shape.files) > 1 else "")
        for hint in shape.hints:
            yield "warning", "fields", f"{where}: {hint}; ragbench logs check shows all"
        if shape.lines and not shape.requests and not shape.left_out:
            reasons = "; ".join(sorted(shape.bad)[:3])
            yield "error", "fields", f"{where}: none of the first {shape.lines} lines is a request: {reasons}"
        for name in (reason for reason in shape.bad if "two columns of this name" in reason):
            yield "error", "fields", f"{where}: {name}"


def inputs(ws: Workspace) -> Iterator[Finding]:
    from ragbench_dagster.calibration.labelled_answers import other_labels, read_calibration
    from ragbench_dagster.dataset.labels import read_corpus, read_labels

    builtin = [s for s in ws.settings.systems.values() if getattr(s, "engine", "").startswith("ragbench_dagster.")]
    if builtin and not ws.corpus.exists():
        yield "error", "corpus", "corpus.jsonl is missing, and the built-in bm25 searches it"
    if ws.corpus.exists():
        yield "ok", "corpus", f"{len(read_corpus(ws.corpus))} passages"
    if ws.labels.exists():
        yield "ok", "labels", f"{len(read_labels(ws.labels))} labels"
    rows = read_calibration(ws)
    level = "ok" if rows else "warning"
    yield level, "calibration", f"{len(rows)} human-labelled rows" + ("" if rows else "; the judge stays unchecked")
    for key, count in other_labels(ws).items():
        yield "warning", "calibration", f"human.{key[:40]}: {count} labels of no metric of this workspace are not read"


def scrubbing(ws: Workspace) -> Iterator[Finding]:
    """The words that are replaced most, by kind of evidence: an over-hit shows here before a release is cut."""
    from ragbench_dagster.traffic.privacy import most_replaced

    days = sorted(path.parent.name for path in (ws.store / "traffic").glob("*/replaced.json"))
    kinds: dict[str, list[str]] = {}
    for row in most_replaced(ws, days[-1], top=3) if days else []:
        kind = f"{row['evidence']} ({'strong' if row['strong'] else 'weak'} evidence)"
        word = f"{row['type']} {row['word']} of {row['length']} characters {row['times']} times"
        kinds.setdefault(kind, []).append(word)
    for kind, words in kinds.items():
        yield "ok", "scrub", f"replaced most by {kind}: {', '.join(words)}"
    if kinds:
        yield "ok", "scrub", "which words these are: ragbench stage scrub --explain --workspace ... < questions.jsonl"


def releases(ws: Workspace) -> Iterator[Finding]:
    from ragbench_dagster.dataset.release import list_releases, load_release

    for row in list_releases(ws):
        try:
            release = load_release(ws, row["id"])
        except UserError as fault:
            yield "error", f"release {row['id']}", str(fault)
            continue
        conflicts = release.manifest.get("conflicts") or []
        yield "ok", f"release {row['id']}", f"verified, {release.examples.num_rows} examples"
        if conflicts:
            yield "warning", f"release {row['id']}", f"{len(conflicts)} label conflicts, left out of the gate"


def labels_fit(ws: Workspace) -> Iterator[Finding]:
    from ragbench_dagster.evaluation.pipeline import label_fit

    found = label_fit(ws)
    if found["labels"]:
        yield ("error" if found["unknown"] else "ok"), "labels", found["message"]


def ledger(ws: Workspace) -> Iterator[Finding]:
    from ragbench_dagster.evaluation.ledger import check_disk

    line = check_disk(ws)
    yield ("error", "ledger", line) if line else ("ok", "ledger", "on a local disk")


def judge(ws: Workspace) -> Iterator[Finding]:
    from ragbench_dagster.evaluation.judge_session import evaluators_for

    settings = ws.settings.judge
    evaluators_for(ws.settings.judged_metrics, settings, ws)  # a fault of the settings is an error of its own
    if settings.provider == "embedded":
        yield "warning", "judge", "the embedded judge is weak: fine to start with, not to decide releases"
        return
    if not os.environ.get(settings.api_key_env):
        yield "warning", "judge", f"the variable {settings.api_key_env} is not set: judge metrics will be inconclusive"


def decisions(ws: Workspace) -> Iterator[Finding]:
    """What nights like the last one decide: margins, floors and labels."""
    from ragbench_dagster.reporting.gate.outlook import decision_advice

    nights = sorted(p.parent.name for p in ws.night("x").parent.glob("????-??-??/summary.json"))
    if not nights:
        yield "ok", "decisions", "no night yet: after the first one doctor says which margins and floors it can decide"
        return
    for level, line in decision_advice(ws, nights[-1]):
        yield level, "decisions", line


def space(ws: Workspace) -> Iterator[Finding]:
    import shutil

    free = shutil.disk_usage(ws.root).free
    low: Any = free < 500e6
    yield ("error" if low else "ok"), "disk", f"{free / 1e9:.1f} GB free"
    if not os.access(ws.root, os.W_OK):
        yield "error", "store", f"{ws.root}: not writable for this user"


def access(ws: Workspace) -> Iterator[Finding]:
    from ragbench_dagster.access import exposed

    found = list(exposed(ws.root))
    if not found:
        yield "ok", "access", "store and .dagster are open to this user alone"
        return
    first = found[0].relative_to(ws.root).as_posix()
    yield (
        "warning",
        "access",
        f"{first} can be read by other users of this machine; run: ragbench doctor --repair",
    )


PARTS: list[Callable[[Workspace], Iterator[Finding]]] = [
    logs,
    fields,
    inputs,
    scrubbing,
    releases,
    labels_fit,
    ledger,
    judge,
    decisions,
    space,
    access,
]

# `ragbench logs check`: what the night would read, before a night.

app = typer.Typer(help="The log files, before a night.", no_args_is_help=True)
_LONGEST = 120  # characters of a text that are shown


@app.callback()
def logs_() -> None:
    """The log files, before a night."""


@app.command("check")
def check(
    n: Annotated[int, typer.Option("-n", min=1, help="Lines of each file that are looked at.")] = 20,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the first lines of each log file as they are read: fields, what nobody reads, three scrubbed requests."""
    from ragbench_dagster.traffic.preview import preview

    found = preview(open_workspace(workspace), n)
    if as_json:
        facts = {"files": found.files, "looked_at": found.looked_at}
        print_json({**facts, "shapes": list(map(_as_json, found.shapes)), "requests": found.requests})
        return
    if found.looked_at < found.files:
        say(f"looked at {found.looked_at} of {found.files} files")
    for shape in found.shapes:
        _print_shape(shape)
    rows = [[row["day"], _cut(row["query"]), _cut(row["response"]), len(row["source_nodes"] or ()), row["latency_ms"],
             row["category"]] for row in found.requests]  # fmt: skip
    if rows:
        print_table("Read as (scrubbed)", ["day", "query", "response", "passages", "ms", "category"], rows)


def _as_json(shape: Shape) -> dict[str, Any]:
    read = {ours: {"from": where, "there": there} for ours, (where, there) in shape.read.items()}
    return {**asdict(shape), "read": read, "hints": shape.hints}


def _print_shape(shape: Shape) -> None:
    more = f" and {len(shape.files) - 1} more" if len(shape.files) > 1 else ""
    title = f"{shape.files[0]}{more}: {shape.lines} lines, {shape.requests} read"
    rows = [[ours, where if there else f"{where} (not there)", there] for ours, (where, there) in shape.read.items()]
    if shape.requests:
        print_table(title, ["field", "read from", "there"], rows)
    rest = [["bad line", reason, count] for reason, count in sorted(shape.bad.items(), key=lambda item: -item[1])]
    rest += [["kept out", "by traffic.where", shape.left_out]] if shape.left_out else []
    rest += [["not read", name, None] for name in shape.unmapped]
    rest += [["hint", hint, None] for hint in shape.hints]
    if rest:
        print_table("" if shape.requests else title, ["", "", "lines"], rest)


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
