"""How good the scrubber is on labelled rows: precision, recall and F1 per type, with 95 % intervals."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ragbench_dagster.errors import UserError
from ragbench_dagster.io.inputs import decoded, read_regular
from ragbench_dagster.settings import Scrub
from ragbench_dagster.traffic.scrubbing.placeholders import Word
from ragbench_dagster.traffic.scrubbing.scrubber import Scrubber
from ragbench_dagster.traffic.scrubbing.spans import Evidence

# Names that other label sets use for our types.
SAME = {
    "STREET_ADDRESS": "ADDRESS", "DOMAIN_NAME": "URL", "EMAIL": "EMAIL_ADDRESS", "PHONE": "PHONE_NUMBER", "NAME": "PERSON",
    "IBAN": "IBAN_CODE", "SSN": "US_SSN", "API_KEY": "SECRET", "PASSWORD": "SECRET", "TOKEN": "SECRET",
}  # fmt: skip
_TYPE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")  # it is stored, and no place for words of the text
_Z = 1.959963984540054  # 97.5 % quantile of the standard normal


def wilson(hits: int, n: int) -> tuple[float | None, float | None]:
    """95 % interval of a proportion (Wilson 1927, JASA 22:209); (None, None) for n = 0."""
    if n == 0:
        return None, None
    p, z2 = hits / n, _Z * _Z
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = _Z * ((p * (1 - p) + z2 / (4 * n)) / n) ** 0.5 / (1 + z2 / n)
    return max(0.0, centre - half), min(1.0, centre + half)


def _share(hits: int, n: int) -> dict[str, float | int | None]:
    low, high = wilson(hits, n)
    return {"value": hits / n if n else None, "low": low, "high": high, "n": n}


def scrub_quality(scrubber: Scrubber, rows: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Precision, recall and F1 per type and over all, on rows {text, spans: [{start, end, type}]}.

    A labelled span is found when a predicted span of its type overlaps it (recall); a prediction is right when
    it overlaps a labelled span of its type (precision). Types in neither labels nor settings are left out;
    predictions over text labelled as another type count against precision.

    Returns:
        {rows, clean_rows, clean_touched: share, types: {TYPE: {precision, recall, f1, labelled, predicted}}, all: ...},
        each share as {value, low, high, n}; value is None for n = 0.
    """
    kept = list(rows)
    labelled: Counter[str] = Counter()
    found: Counter[str] = Counter()
    predicted: Counter[str] = Counter()
    right: Counter[str] = Counter()
    clean = touched = 0
    for row, scrubbed in zip(kept, scrubber.texts([row["text"] for row in kept]), strict=True):
        gold = [(s["start"], s["end"], SAME.get(s["type"], s["type"])) for s in row["spans"]]
        mine = [(s.start, s.end, s.type) for s in scrubbed.spans]
        if not gold:
            clean += 1
            touched += bool(mine)
        for span in gold:
            labelled[span[2]] += 1
            found[span[2]] += any(_overlap(span, other) for other in mine)
        for span in mine:
            predicted[span[2]] += 1
            right[span[2]] += any(_overlap(span, other) for other in gold)
    types = {
        name: _scores(found[name], labelled[name], right[name], predicted[name])
        for name in sorted(labelled.keys() | predicted.keys())
    }
    return {
        "rows": len(kept),
        "clean_rows": clean,
        "clean_touched": _share(touched, clean),
        "types": types,
        "all": _scores(found.total(), labelled.total(), right.total(), predicted.total()),
    }


def _overlap(one: tuple[int, int, str], other: tuple[int, int, str]) -> bool:
    return one[2] == other[2] and one[0] < other[1] and other[0] < one[1]


def _scores(found: int, labelled: int, right: int, predicted: int) -> dict[str, Any]:
    recall, precision = _share(found, labelled), _share(right, predicted)
    r, p = recall["value"], precision["value"]
    f1 = 2 * p * r / (p + r) if p and r else (0.0 if labelled and predicted else None)
    return {"precision": precision, "recall": recall, "f1": f1, "labelled": labelled, "predicted": predicted}


def scrub_floor(quality: dict[str, Any], settings: Scrub) -> list[str]:
    """One line for each type whose recall is below `scrub.floor`; empty when all hold.

    A type with a floor but without labelled rows is unknown, and unknown is not good: it is named too.
    """
    faults = []
    for name, floor in sorted(settings.floor.items()):
        scores = quality["all"] if name == "all" else quality["types"].get(name)
        value = scores["recall"]["value"] if scores else None
        if value is None:
            faults.append(f"{name}: no labelled rows, so its recall is unknown (floor {floor:.2f})")
        elif value < floor:
            faults.append(f"{name}: recall {value:.3f} is below the floor {floor:.2f} (n = {scores['labelled']})")
    return faults


def read_labelled(path: Path) -> list[dict[str, Any]]:
    """The rows of a workspace's `scrub_labels.jsonl`; a missing file gives none.

    Raises:
        UserError: a line that is no such row; the line names its number, never its text.
    """
    import json

    try:
        data = read_regular(path)
    except FileNotFoundError:
        return []
    except OSError as fault:
        raise UserError(f"{path.name}: cannot be read ({fault.strerror}); make it readable") from fault
    rows = []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = decoded(json.loads, line)
            text, spans = row["text"], row["spans"]
            ok = isinstance(text, str) and all(
                isinstance(s["type"], str) and _TYPE.fullmatch(s["type"]) and 0 <= s["start"] < s["end"] <= len(text)
                for s in spans
            )
        except (ValueError, KeyError, TypeError):  # Undecodable is a ValueError
            ok = False
        if not ok:
            raise UserError(
                f'{path.name}: line {number}: needs {{"text", "spans": [{{"start", "end", "type"}}]}} with offsets inside the text'
            )
        rows.append({"text": text, "spans": spans})
    return rows


# Which words are replaced most, by kind of evidence: so that an over-hit is seen before a release is cut.
#
# A word that stands for nobody ("Respirators" as PERSON) shows by its frequency. What is stored and printed is a
# keyed hash and a length; the words themselves are shown by `ragbench stage scrub --explain` alone.

MARK = 12  # hex digits of the keyed hash that are shown
KEPT = 20  # words of each kind of evidence that a day keeps


def most_frequent(counted: Counter[Word], keyed: Callable[[str], str], top: int = KEPT) -> list[dict[str, Any]]:
    """The `top` words of each kind of evidence: {evidence, strong, type, word: keyed hash, length, times}."""
    rows = [
        {
            "evidence": evidence, "strong": Evidence(evidence).strong, "type": type_, "word": word_mark(type_, value, keyed),
            "length": len(value), "times": times,
        }
        for (evidence, type_, value), times in counted.items()
    ]  # fmt: skip
    return _topmost(rows, top)


def word_mark(type_: str, value: str, keyed: Callable[[str], str]) -> str:
    """What stands for a replaced word outside the terminal; `value` as `identity` gives it."""
    return keyed(f"word {type_} {value}")[:MARK]


def summed(days: Sequence[Sequence[dict[str, Any]]], top: int = KEPT) -> list[dict[str, Any]]:
    """The rows of several days as one list, with the number of days of each word."""
    whole: dict[tuple[str, str, str], dict[str, Any]] = {}
    for rows in days:
        for row in rows:
            kept = whole.setdefault((row["evidence"], row["type"], row["word"]), {**row, "times": 0, "days": 0})
            kept["times"] += row["times"]
            kept["days"] += 1
    return _topmost(list(whole.values()), top)


def _topmost(rows: list[dict[str, Any]], top: int) -> list[dict[str, Any]]:
    order = [e.value for e in Evidence]
    rows.sort(key=lambda r: (order.index(r["evidence"]), -r["times"], r["type"], r["word"]))
    seen: Counter[str] = Counter()
    kept = []
    for row in rows:
        seen[row["evidence"]] += 1
        if seen[row["evidence"]] <= top:
            kept.append(row)
    return kept
