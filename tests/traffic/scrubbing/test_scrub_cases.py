"""The field cases of kind pii, as try_case.py judges them."""

import json

import pytest

from ragbench_dagster.settings import Scrub
from ragbench_dagster.traffic.scrubbing import build_scrubber, stage_scrub

CASES = [
    "pii-card-luhn", "pii-file-names-as-urls", "pii-names-and-lookalikes", "pii-not-a-phone", "pii-phones-by-country",
    "pii-version-or-address",
]  # fmt: skip


def _lines(path) -> list[dict]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line.strip()]


@pytest.mark.parametrize("ner", ["off", "auto"])
@pytest.mark.parametrize("case", CASES)
def test_case(shared, case, ner):
    folder = shared / "cases" / "cases" / case
    want = json.loads((folder / "expect.json").read_text(encoding="utf-8"))
    rows = _lines(folder / "in.jsonl")
    out = list(stage_scrub(rows, build_scrubber(Scrub(ner=ner))))
    assert len(out) == len(rows)
    for wanted, row, done in zip(want["rows"], rows, out, strict=True):
        assert [w for w in wanted.get("gone", []) if w in done["text"]] == []
        assert [w for w in wanted.get("keep", []) if w not in done["text"]] == []
        assert all(0 <= s["start"] < s["end"] <= len(row["text"]) for s in done["spans"])
    touched = sum(row["text"] != done["text"] for row, done in zip(rows, out, strict=True))
    assert touched <= want.get("touched_max", len(rows))


def test_line_separators_inside_a_text_pass_through(shared):
    rows = _lines(shared / "cases" / "cases" / "log-line-separators" / "stage.jsonl")
    out = list(stage_scrub(rows, build_scrubber(Scrub(ner="off"))))
    assert [o["text"] for o in out] == [r["text"] for r in rows]
    assert len(out) == 3
