"""The human-labelled answers of a workspace: `calibration/*.jsonl`.

    {id, query, contexts, response, reference, human: {faithfulness|relevancy|correctness: 0|1|null}}

Optional: `history`; `raters: {METRIC: [label, ...]}` where several people judged; for answers drawn by
`label_sample` from a night: `sample: {release, system, example_id, answer_hash, weight}`; and `draw: NAME` for
answers drawn blind (blind.py). Rows of equal content are one row whose labels are votes, but for drawn ones.
"""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.kept_texts import item_with, texts_of_item
from ragbench_dagster.io.inputs import Undecodable, decoded, read_regular
from ragbench_dagster.metrics import bases
from ragbench_dagster.records import Item
from ragbench_dagster.store import Workspace, digest
from ragbench_dagster.traffic.scrubbed_rows import Texts, scrub_handed_in

# How a human label or a judge's verdict is written: true, 1 and 1.0 are one value, false and 0 the other.
#
# Null and missing are left out and counted. Any other text is an error that names the row: a label such as
# "unsure" is never read as true.

MISSING = object()
_LARGEST = 1e300


def lookup(row: Any, path: str) -> Any:
    """The value at a dotted path; in a path the longest existing key wins (`judge.gpt-4.1`).

    Returns:
        `MISSING` where the path leads nowhere.
    """
    if not isinstance(row, dict):
        return MISSING
    if path in row:
        return row[path]
    cut = len(path)
    while (cut := path.rfind(".", 0, cut)) > 0:
        if path[:cut] in row:
            found = lookup(row[path[:cut]], path[cut + 1 :])
            if found is not MISSING:
                return found
    return MISSING


def number(value: Any, where: str) -> float | None:
    """A label, verdict or score as a finite number; None where it is null or missing.

    Raises:
        UserError: text, a list, NaN or infinity; the line names `where` and never echoes the value.
    """
    if value is None or value is MISSING:
        return None
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int | float):
        if abs(value) <= _LARGEST:  # neither NaN, nor infinite, nor an integer beyond every float
            return float(value)
        raise UserError(f"{where} is not a finite number; write 0, 1 or null")
    kind = "text" if isinstance(value, str) else f"a {type(value).__name__}"
    raise UserError(f"{where} is {kind}; write 0 or 1 (true and false are understood), null for unsure")


def binary(value: Any, where: str) -> int | None:
    """A human label as 0 or 1; None where it is null or missing.

    Raises:
        UserError: anything but 0, 1, true, false, null.
    """
    found = number(value, where)
    if found is None:
        return None
    if found not in (0.0, 1.0):
        raise UserError(f"{where} is {found:g}; a human label is 0 or 1, null for unsure")
    return int(found)


# The human-labelled answers of a workspace: `calibration/*.jsonl`.

TYPO = 0.8  # likeness of a key to a metric, 0 to 1, from which on it is one mistyped
HEAVIEST = 1e9  # of a drawn row; no sample is one of more answers than that
LFS_HEAD = b"version https://git-lfs"


@dataclass(frozen=True, slots=True)
class Sample:
    """Where a labelled answer was drawn: a random sample of one system's answers of one release."""

    release: str
    system: str
    example_id: str
    answer_hash: str
    weight: float = 1.0  # inverse of the chance to be drawn


@dataclass(frozen=True, slots=True)
class CalibrationRow:
    """One answer that people judged. `key` is a hash of the content, so an edited row is another row."""

    key: str
    item: Item
    human: dict[str, int]  # metric: 0 or 1; absent where unlabelled or unsure
    raters: dict[str, tuple[float, ...]] = field(default_factory=dict)
    sample: Sample | None = None
    where: str = ""  # line, for messages
    draw: tuple[str, str] | None = None  # name of the draw and id within it: never a row of the calibration set


def read_calibration(ws: Workspace) -> list[CalibrationRow]:
    """All labelled answers of the workspace, scrubbed, sorted by key.

    Raises:
        UserError: unreadable file, broken line, a label that is not 0/1/null; names file and line.
    """
    known = known_metrics(ws)
    found: dict[tuple[str, str], list[CalibrationRow]] = {}
    given: list[CalibrationRow] = []
    if ws.calibration.is_dir():
        for path in sorted(ws.calibration.glob("*.jsonl")):
            given += _read(path, known, _name(ws, path))
    # Scrubbed before anybody is asked, as a release's questions and answers are: the judge is measured on what it
    # sees at night, and no personal data of these files reaches it.
    clean = scrub_handed_in(ws, "calibration", [texts_of_item(row.item) for row in given])
    for row in (_with_texts(row, texts) for row, texts in zip(given, clean, strict=True)):
        found.setdefault((row.key, row.draw[1] if row.draw else ""), []).append(row)
    return [_merge(rows) for _, rows in sorted(found.items())]


def _name(ws: Workspace, path: Path) -> Callable[[], str]:
    """The file's name for a message: like a log file's, it may be a person's."""
    from ragbench_dagster.traffic.scan import shown_name

    return lambda: shown_name(ws, path.name)


def known_metrics(ws: Workspace) -> set[str]:
    """Metrics that a human label can be of."""
    return {*bases("judged"), *ws.settings.judged_metrics, *ws.settings.judge.evaluators}


def other_labels(ws: Workspace) -> dict[str, int]:
    """Keys of `human` that are no metric here, with the number of labels under each that nobody reads."""
    found: Counter[str] = Counter()
    known = known_metrics(ws)
    for path in sorted(ws.calibration.glob("*.jsonl")) if ws.calibration.is_dir() else ():
        for raw in read_regular(path).split(b"\n"):
            try:
                row = decoded(json.loads, raw.decode("utf-8"))
            except (UnicodeDecodeError, Undecodable):
                continue  # `read_calibration` tells it
            labels = row.get("human") if isinstance(row, dict) else None
            found.update(k for k, v in (labels or {}).items() if k not in known and v is not None)
    return dict(sorted(found.items()))


def _checked(labels: dict[str, Any], known: set[str], where: str) -> None:
    """Raises UserError for a key that is a metric mistyped: its label would be lost without a word.

    Labels of other things (a tool's notes, a metric that is not measured here) may stand in the file; `ragbench
    doctor` names them.
    """
    for key, value in labels.items():
        if key not in known and value is not None:
            match = difflib.get_close_matches(key.lower(), sorted(known), 1, TYPO)
            if match:
                raise UserError(f"{where}: human.{key[:40]}: no such metric, did you mean {match[0]!r}?")


def _read(path: Path, known: set[str], name: Callable[[], str]) -> Iterator[CalibrationRow]:
    try:
        data = read_regular(path)
    except OSError as fault:
        raise UserError(f"{name()}: cannot be read ({fault.strerror}); check it") from fault
    if data.startswith(LFS_HEAD):
        raise UserError(f"{name()}: is a Git LFS pointer, not the file; run: git lfs pull")
    for line, raw in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if raw.strip():
            try:
                yield _row(raw, f"line {line}", known)
            except UserError as fault:
                raise UserError(f"{name()}: {fault}") from fault


def _row(raw: bytes, where: str, known: set[str]) -> CalibrationRow:
    try:
        row = decoded(json.loads, raw.decode("utf-8"))
    except (UnicodeDecodeError, Undecodable) as fault:
        raise UserError(f"{where}: is not JSON in UTF-8; correct or remove the line") from fault
    if not isinstance(row, dict):
        raise UserError(f"{where}: must be a JSON object")
    query, response = (_text(row, name, where) for name in ("query", "response"))
    if query is None or response is None:
        raise UserError(f"{where}: query and response are required")
    contexts, history = (_texts(row, name, where) for name in ("contexts", "history"))
    reference = _text(row, "reference", where)
    labels = _section(row, "human", where)
    _checked(labels, known, where)
    human = {
        metric: label
        for metric, value in labels.items()
        if metric in known and (label := binary(value, f"{where}: human.{metric}")) is not None
    }
    raters = {}
    for metric, values in _section(row, "raters", where).items():
        if metric in known:
            if not isinstance(values, list):
                raise UserError(f"{where}: raters.{metric} must be a list of labels")
            read = [number(v, f"{where}: raters.{metric}") for v in values]
            raters[metric] = tuple(v for v in read if v is not None)
    item = Item("", query, response, contexts, reference, history)
    return CalibrationRow("", item, human, raters, _sample(row, where), where, _draw(row, where))


def _with_texts(row: CalibrationRow, texts: Texts) -> CalibrationRow:
    """`row` with its scrubbed texts, and the key that they give."""
    item = item_with(row.item, texts)
    key = digest(item.query, list(item.contexts), item.response, item.reference, list(item.history))
    return replace(row, key=key, item=replace(item, example_id=key))


def _text(row: dict[str, Any], name: str, where: str) -> str | None:
    value = row.get(name)
    if value is not None and not isinstance(value, str):
        raise UserError(f"{where}: {name} must be text")
    return value


def _texts(row: dict[str, Any], name: str, where: str) -> tuple[str, ...]:
    value = row.get(name) or []
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        raise UserError(f"{where}: {name} must be a list of texts")
    return tuple(v if isinstance(v, str) else json.dumps(v, ensure_ascii=False, sort_keys=True) for v in value)


def _section(row: dict[str, Any], name: str, where: str) -> dict[str, Any]:
    value = row.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise UserError(f"{where}: {name} must hold metric names and labels")
    return value


def _sample(row: dict[str, Any], where: str) -> Sample | None:
    raw = row.get("sample")
    if raw is None:
        return None
    try:
        weight = float(raw.get("weight", 1.0))
        found = Sample(str(raw["release"]), str(raw["system"]), str(raw["example_id"]), str(raw["answer_hash"]), weight)
    except (AttributeError, TypeError, KeyError, ValueError, OverflowError) as fault:
        raise UserError(
            f"{where}: sample must hold release, system, example_id, answer_hash and weight, as drawn"
        ) from fault
    if not 0 < weight <= HEAVIEST:
        raise UserError(f"{where}: sample.weight is 1 over the chance to be drawn: above 0, at most {HEAVIEST:g}")
    return found


def _draw(row: dict[str, Any], where: str) -> tuple[str, str] | None:
    name = _text(row, "draw", where)
    if name is None:
        return None
    own = _text(row, "id", where)
    if not own:
        raise UserError(f"{where}: a drawn row needs its id, as drawn")
    return name, own


def _merge(rows: list[CalibrationRow]) -> CalibrationRow:
    """Rows of one content: the majority of their labels, none where they balance; each label is a vote."""
    first = rows[0]
    if len(rows) == 1:
        return first
    human: dict[str, int] = {}
    raters: dict[str, tuple[float, ...]] = {}
    for metric in sorted({m for row in rows for m in (*row.human, *row.raters)}):
        votes = [row.human[metric] for row in rows if metric in row.human]
        if votes and 2 * sum(votes) != len(votes):
            human[metric] = int(2 * sum(votes) > len(votes))
        every = [v for row in rows for v in row.raters.get(metric) or ()]
        raters[metric] = tuple(every or map(float, votes))
    sample = next((row.sample for row in rows if row.sample), None)
    return replace(first, human=human, raters=raters, sample=sample)
