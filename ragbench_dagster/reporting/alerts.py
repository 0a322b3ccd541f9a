"""Alerts: gate failures, a drifted judge, failed runs and missed nights, by webhook, e-mail or chat (apprise).

One message a night: all that is wrong goes into one, and the same trouble of the same night is never told twice,
however often it is run again. A message is sent a second time only for trouble that was not known before, or when
sending failed. Every alert is also a line of `store/alerts.jsonl`, whether or not anything is configured.

No message and no line holds the text of a question or an answer: only days, names from the settings, figures and
the gate's reasons. The targets are read from the environment variable that `alerts.urls_env` names, one apprise URL
a line; they hold secrets and are never printed or stored.
"""

from __future__ import annotations

import json
import logging
import os
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from ragbench_dagster.errors import UserError
from ragbench_dagster.io.inputs import Undecodable, decoded
from ragbench_dagster.results import GateDecision
from ragbench_dagster.store import Workspace, read_json, write_text
from ragbench_dagster.text.format import safe_terminal

MAX_REASONS = 12
MAX_LINE = 300  # characters of one line of a message


def failed_run(ws: Workspace, run_id: str, job: str, day: str) -> dict[str, Any]:
    """Record that a run failed, and send a message where alerts are configured.

    Args:
        run_id: Dagster's id of the run; the same run is recorded once.
        job: its job.
        day: its partition (the last one of a range), or "" where it has none.

    Returns:
        The line of alerts.jsonl.
    """
    when = f"Night {day}" if day else "A run without a day"
    lines = [f"{when}: the run of job {job} failed.", f"Run {run_id}: its events in the Dagster UI say where."]
    return _tell(ws, day, [f"failed run: {job}"], lines, run_id=run_id)


def alert_night(ws: Workspace, day: str) -> dict[str, Any] | None:
    """Send what is wrong with a finished night; None when nothing is.

    An inconclusive gate is told too: the night did not pass, and somebody must do what its reasons say.
    """
    gate = ws.result(day, GateDecision)
    kinds, lines = [], []
    if gate is not None and gate.verdict != "pass":
        kinds.append(f"gate: {gate.verdict}")
        lines.append(f"Gate of {day}: {gate.verdict.upper()}")
        lines += [f"- {reason}" for reason in gate.reasons[:MAX_REASONS]]
        if len(gate.reasons) > MAX_REASONS:
            lines.append(f"- and {len(gate.reasons) - MAX_REASONS} more")
    for line in _drift(ws, day):
        kinds.append("judge drifted")
        lines.append(line)
    missed = missed_nights(ws, day)
    if missed:
        kinds.append(f"missed nights before {day}")
        span = missed[0] if len(missed) == 1 else f"{len(missed)} nights from {missed[0]} to {missed[-1]}"
        lines.append(f"Missed: {span}. Run: ragbench run --date {missed[0]}")
    return _tell(ws, day, kinds, [*lines, f"The report: ragbench report --date {day}"]) if kinds else None


def missed_nights(ws: Workspace, day: str) -> list[str]:
    """Days between the last night before `day` and `day` that have no night; empty before the first night."""
    folder = ws.night("x").parent
    before = sorted(p.parent.name for p in folder.glob("????-??-??/gate.json") if p.parent.name < day)
    if not before:
        return []
    first, last = date.fromisoformat(before[-1]), date.fromisoformat(day)
    return [(first + timedelta(days=i)).isoformat() for i in range(1, (last - first).days)]


def alerts(ws: Workspace) -> list[dict[str, Any]]:
    """All lines of alerts.jsonl, oldest first.

    Raises:
        UserError: a damaged line.
    """
    path = _path(ws)
    if not path.exists():
        return []
    found = []
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            found.append(decoded(json.loads, line))
        except Undecodable as fault:
            raise UserError(f"{path}: line {number} is not JSON; delete the line") from fault
    return found


def _path(ws: Workspace) -> Path:
    return ws.store / "alerts.jsonl"


def _drift(ws: Workspace, day: str) -> list[str]:
    from ragbench_dagster.calibration.calibrate import drift_line

    found = read_json(ws.night(day) / "calibration.json")
    drifted, line = drift_line(found) if found else (False, "")
    return [line] if drifted else []


def _tell(ws: Workspace, day: str, kinds: list[str], lines: list[str], run_id: str | None = None) -> dict[str, Any]:
    """Record the alert; send it unless this trouble of this night was told before."""
    known = alerts(ws)
    told = {k for a in known if a.get("day") == day and a.get("sent") == "yes" for k in a.get("kinds", [])}
    if day and set(kinds) <= told:
        sent = "told before"
    else:
        sent = _send(ws, f"Ragbench {ws.root.name} {day}: {', '.join(kinds)}", lines)
    entry: dict[str, Any] = {"day": day, "kinds": kinds, "lines": [_line(x) for x in lines], "sent": sent}
    if ws.sample:
        entry["sample"] = ws.sample
    if run_id is not None:
        entry["run_id"] = run_id
    # A message that could not be sent is tried at every call and recorded once.
    if not any(_same(entry, a) for a in known):
        text = "".join(json.dumps(a, ensure_ascii=False, sort_keys=True) + "\n" for a in [*known, entry])
        write_text(_path(ws), text)
    return entry


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """The same trouble: a run that was recorded, or a night's lines that were told or failed alike."""
    if "run_id" in one:
        return one["run_id"] == other.get("run_id") and (one["sent"] == other["sent"] or one["sent"] == "told before")
    keys = ("day", "kinds", "lines", "sample")
    same = "run_id" not in other and all(one.get(k) == other.get(k) for k in keys)
    return same and one["sent"] in (other["sent"], "told before")


def _line(text: str) -> str:
    flat = safe_terminal(text).strip()
    return flat if len(flat) <= MAX_LINE else flat[: MAX_LINE - 1] + "…"


def _send(ws: Workspace, title: str, lines: list[str]) -> str:
    """ "yes", or in a few words why not; never raises: an alert must not break what it tells about."""
    variable = ws.settings.alerts.urls_env
    urls = [u.strip() for u in os.environ.get(variable, "").splitlines() if u.strip()]
    if not urls:
        return "not configured"
    try:
        import apprise
    except ImportError:
        return "no: install ragbench-dagster[alerts]"
    # Apprise's own log may name the target, and a target's URL holds its token.
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
    sender = apprise.Apprise()
    refused = sum(not sender.add(url) for url in urls)
    body = "\n".join(_line(line) for line in lines)
    try:
        done = bool(len(sender)) and sender.notify(
            title=_line(title), body=body, body_format=apprise.NotifyFormat.TEXT, notify_type=apprise.NotifyType.WARNING
        )
    except Exception as fault:
        # Whatever a plugin raises may quote its URL: only the class is told.
        return f"no: {type(fault).__name__}"
    if refused:
        return f"no: {refused} of {len(urls)} URLs in {variable} are not apprise URLs"
    return "yes" if done else "no: a target did not take the message"
