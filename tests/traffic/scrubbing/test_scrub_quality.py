"""Precision, recall, F1 and their intervals; the floor; the labelled file."""

import pytest
from statsmodels.stats.proportion import proportion_confint

from ragbench_dagster.errors import UserError
from ragbench_dagster.settings import Scrub
from ragbench_dagster.traffic.scrubbing import Scrubbed, Span, read_labelled, scrub_floor, scrub_quality
from ragbench_dagster.traffic.scrubbing.quality import wilson


class Fixed:
    """A scrubber that finds what it is told to."""

    def __init__(self, spans: list[list[Span]]) -> None:
        self.spans = spans

    def texts(self, texts: list[str]) -> list[Scrubbed]:
        return [Scrubbed(t, tuple(s)) for t, s in zip(texts, self.spans, strict=True)]


def _label(start: int, end: int, type_: str) -> dict:
    return {"start": start, "end": end, "type": type_}


ROWS = [
    {"text": "a" * 30, "spans": [_label(0, 5, "PERSON"), _label(10, 15, "PERSON"), _label(20, 25, "STREET_ADDRESS")]},
    {"text": "b" * 30, "spans": [_label(0, 5, "URL")]},
    {"text": "c" * 30, "spans": []},
    {"text": "d" * 30, "spans": []},
]
FOUND = [
    [Span(4, 8, "PERSON"), Span(20, 22, "ADDRESS"), Span(10, 15, "URL")],
    [],
    [Span(0, 3, "PERSON")],
    [],
]


@pytest.fixture(scope="module")
def quality() -> dict:
    return scrub_quality(Fixed(FOUND), ROWS)  # type: ignore[arg-type]


def test_counts_by_hand(quality):
    person = quality["types"]["PERSON"]
    assert (person["recall"]["value"], person["precision"]["value"], person["f1"]) == (0.5, 0.5, 0.5)
    assert quality["types"]["ADDRESS"]["recall"]["value"] == 1.0  # STREET_ADDRESS is the same type
    assert quality["types"]["URL"]["recall"]["value"] == 0.0
    assert quality["types"]["URL"]["precision"]["value"] == 0.0
    assert quality["all"]["recall"] | {"low": 0, "high": 0} == {"value": 0.5, "n": 4, "low": 0, "high": 0}
    assert quality["all"]["precision"]["n"] == 4
    assert (quality["rows"], quality["clean_rows"], quality["clean_touched"]["value"]) == (4, 2, 0.5)


@pytest.mark.parametrize(("hits", "n"), [(0, 7), (7, 7), (3, 11), (190, 200)])
def test_wilson_intervals_are_those_of_statsmodels(hits, n):
    assert wilson(hits, n) == pytest.approx(proportion_confint(hits, n, method="wilson"), abs=1e-12)


def test_nothing_to_count_is_unknown_and_not_zero():
    empty = scrub_quality(Fixed([]), [])  # type: ignore[arg-type]
    assert empty["all"]["recall"] == {"value": None, "low": None, "high": None, "n": 0}
    assert empty["all"]["f1"] is None


def test_the_floor_names_the_types_that_fell(quality):
    assert scrub_floor(quality, Scrub(floor={"PERSON": 0.5, "ADDRESS": 0.9})) == []
    faults = scrub_floor(quality, Scrub(floor={"PERSON": 0.6, "all": 0.9, "US_SSN": 0.9}))
    assert [f.split(":")[0] for f in faults] == ["PERSON", "US_SSN", "all"]
    assert "0.500" in faults[0]
    assert "no labelled rows" in faults[1]


def test_labelled_rows_are_read_past_a_byte_order_mark_and_separators(tmp_path):
    path = tmp_path / "scrub_labels.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"text": "a\xe2\x80\xa8b", "spans": [{"start": 0, "end": 1, "type": "PERSON"}]}\r\n\n'
    )
    assert read_labelled(path) == [{"text": "a\u2028b", "spans": [_label(0, 1, "PERSON")]}]
    assert read_labelled(tmp_path / "none.jsonl") == []


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"text": "ab"}',
        '{"text": "ab", "spans": [{"start": 0, "end": 9, "type": "X"}]}',
        '{"text": 1, "spans": []}',
    ],
)
def test_a_bad_labelled_line_is_named_by_its_number_and_never_by_its_text(tmp_path, line):
    path = tmp_path / "scrub_labels.jsonl"
    path.write_text('{"text": "ok", "spans": []}\n' + line + "\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"^scrub_labels.jsonl: line 2: [^\n]*$") as fault:
        read_labelled(path)
    assert '"ab"' not in str(fault.value)
