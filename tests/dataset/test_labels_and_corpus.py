"""Labels and passages as people's tools leave them: ids stay text, and a wrong row is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragbench_dagster.dataset.labels import Label, label_book, read_corpus, read_labels
from ragbench_dagster.errors import UserError

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 48213\n"


def read(folder: Path, text: str | bytes, name: str = "labels.jsonl") -> list[Label]:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_labels(path)


def test_json_lines_with_byte_order_mark_and_crlf(tmp_path: Path) -> None:
    (label,) = read(tmp_path, b'\xef\xbb\xbf{"query": "q", "expected_doc_ids": ["a"], "category": "c"}\r\n\r\n')
    assert (label.query, label.expected_doc_ids, label.category, label.row) == ("q", ("a",), "c", 1)


def test_ids_are_text_whatever_they_look_like(tmp_path: Path) -> None:
    text = '{"query": "q", "expected_doc_ids": [12, "012", 1e3, 90071992547409931, "12"]}'
    assert read(tmp_path, text)[0].expected_doc_ids == ("12", "012", "1e3", "90071992547409931")


@pytest.mark.parametrize(
    "grades",
    ['{"high": 3, "low": 1}', '[{"id": "high", "grade": 3}, {"id": "low", "grade": 1}]'],
)
def test_grades_are_kept(tmp_path: Path, grades: str) -> None:
    (label,) = read(tmp_path, '{"query": "q", "expected_doc_ids": ' + grades + "}")
    assert label.expected_doc_ids == ("high", "low")
    assert label.expected_grades == (3.0, 1.0)


def test_a_separator_inside_a_json_string_ends_no_line(tmp_path: Path) -> None:
    text = json.dumps({"query": "a\u2028b", "expected_answer": "x"}, ensure_ascii=False)
    assert read(tmp_path, text)[0].query == "a\u2028b"


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_spreadsheet_round_trip(tmp_path: Path, separator: str) -> None:
    quoted = '"{""x"": 2, ""y"": 1}"'
    rows = [
        separator.join(("query", "expected_doc_ids", "expected_answer", "category")),
        separator.join(("one", "a|b", "'=1+1", "c")),
        separator.join(("two", quoted, "", "")),
        separator.join(("", "", "", "")),
    ]
    one, two = read(tmp_path, ("\ufeff" + "\r\n".join(rows)).encode(), "labels.csv")
    assert one.expected_doc_ids == ("a", "b")
    assert one.expected_answer == "=1+1"  # the apostrophe that kept a spreadsheet from running it is off again
    assert two.expected_doc_ids == ("x", "y")
    assert two.expected_grades == (2.0, 1.0)
    assert two.expected_answer is None


def test_the_unicode_text_that_excel_saves(tmp_path: Path) -> None:
    (label,) = read(tmp_path, "query\texpected_doc_ids\r\nd\u00e9j\u00e0\ta\r\n".encode("utf-16"), "labels.txt")
    assert label.query == "d\u00e9j\u00e0"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"query": "q", "expected_doc_ids": [null]}', "row 2.*null"),
        ('{"query": "q", "expected_doc_ids": [["a"]]}', "row 2.*nested"),
        ('{"query": "q", "expected_doc_ids": [true]}', "row 2"),
        ('{"query": "q", "expected_doc_ids": {"a": -1}}', "row 2.*grade"),
        ('{"query": "q", "expected_doc_ids": {"a": "high"}}', "row 2.*grade"),
        ('{"query": "", "expected_doc_ids": ["a"]}', "row 2.*query"),
        ('{"expected_doc_ids": ["a"]}', "row 2.*query"),
        ('{"query": "q", "level": "page"}', "row 2.*level"),
        ('{"query": ["q"]}', "row 2.*query"),
        ('{"query": "q", "expected_answer": NaN}', "row 2.*JSON"),
        ('{"query": "q"', "row 2.*JSON"),
        ('["q"]', "row 2.*object"),
    ],
)
def test_a_wrong_row_is_named_and_its_text_is_not(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as fault:
        read(tmp_path, '{"query": "fine"}\n' + line)
    assert "\n" not in str(fault.value)


def test_text_that_is_not_utf8_names_its_row(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="row 2: not UTF-8"):
        read(tmp_path, b'{"query": "a"}\n{"query": "\xe9"}')


@pytest.mark.parametrize("reader", [read_labels, read_corpus])
def test_a_git_lfs_pointer_says_so(tmp_path: Path, reader: object) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text(POINTER, encoding="utf-8")
    with pytest.raises(UserError, match=r"file\.jsonl: this is a Git LFS pointer, run git lfs pull"):
        reader(path)  # type: ignore[operator]


def test_two_labels_that_differ_are_a_conflict_and_two_that_complete_each_other_are_one() -> None:
    book = label_book(
        [
            Label("Who pays?", ("a",), row=1),
            Label("who pays", ("b",), row=2),
            Label("How long?", ("a",), row=3),
            Label("how long", None, None, "A week.", "time", row=4),
            Label("which?", ("a", "b"), (2.0, 1.0), row=5),
            Label("Which", ("b", "a"), (1.0, 2.0), row=6),
        ]
    )
    assert book.conflicts == {"who pays": (1, 2)}
    assert book.by_form["how long"].expected_doc_ids == ("a",)
    assert book.by_form["how long"].expected_answer == "A week."
    assert book.by_form["how long"].category == "time"
    assert book.by_form["which"].expected_doc_ids == ("a", "b")


def test_grades_alone_make_a_conflict() -> None:
    book = label_book([Label("q", ("a",), (3.0,), row=1), Label("q", ("a",), row=2)])
    assert book.conflicts == {"q": (1, 2)}


@given(st.binary(max_size=200))
@settings(max_examples=300, deadline=None)
def test_no_bytes_make_the_reader_fall(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("x") / "labels.jsonl"
    path.write_bytes(data)
    try:
        labels = read_labels(path)
    except UserError:
        return
    assert all(label.query for label in labels)


def test_a_corpus_keeps_its_order_and_ids(tmp_path: Path) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text('{"doc_id": "b", "text": "B"}\n{"doc_id": 7, "text": ""}\n', encoding="utf-8")
    assert list(read_corpus(path).items()) == [("b", "B"), ("7", "")]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"doc_id": null, "text": "x"}', "row 2.*doc_id"),
        ('{"doc_id": "", "text": "x"}', "row 2.*doc_id"),
        ('{"doc_id": "a", "text": "other"}', "row 2.*row 1"),
        ('{"doc_id": "c"}', "row 2.*text"),
    ],
)
def test_a_wrong_passage_is_named(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text('{"doc_id": "a", "text": "x"}\n' + line, encoding="utf-8")
    with pytest.raises(UserError, match=said):
        read_corpus(path)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"corpus\.jsonl: no such file"):
        read_corpus(tmp_path / "corpus.jsonl")
