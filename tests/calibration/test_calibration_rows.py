"""Reading calibration/*.jsonl: what is understood, and how a fault is told."""

import json

import pytest

from ragbench_dagster.calibration.agreement import human_agreement
from ragbench_dagster.calibration.labelled_answers import other_labels, read_calibration
from ragbench_dagster.errors import UserError
from ragbench_dagster.settings import parse_settings
from ragbench_dagster.store import Workspace


def line(**change):
    base = {
        "id": "c1",
        "query": "q",
        "contexts": ["c"],
        "response": "r",
        "reference": "ref",
        "human": {"faithfulness": 1},
    }
    return {**base, **change}


@pytest.fixture
def workspace(tmp_path):
    def write(*rows, raw=None, name="rows.jsonl"):
        folder = tmp_path / "calibration"
        folder.mkdir(exist_ok=True)
        data = raw if raw is not None else "\n".join(json.dumps(r) for r in rows).encode()
        (folder / name).write_bytes(data)
        return Workspace(tmp_path, parse_settings(""))

    return write


def test_no_folder_is_no_rows(tmp_path):
    assert read_calibration(Workspace(tmp_path, parse_settings(""))) == []


def test_byte_order_mark_and_crlf_and_line_separators_inside_text_are_understood(workspace):
    text = (
        "\ufeff"
        + json.dumps(line(query="a\u2028b"), ensure_ascii=False)
        + "\r\n"
        + json.dumps(line(query="c"))
        + "\r\n"
    )
    assert sorted(r.item.query for r in read_calibration(workspace(raw=text.encode()))) == ["a\u2028b", "c"]


def test_a_git_lfs_pointer_is_named_as_one(workspace):
    with pytest.raises(UserError, match=r"^rows\.jsonl: is a Git LFS pointer.*git lfs pull$"):
        read_calibration(workspace(raw=b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"human": {"faithfulness": "secret words"}}, "human.faithfulness is text"),
        ({"human": {"faithfulness": 2}}, "human.faithfulness is 2"),
        ({"human": []}, "human must hold metric names and labels"),
        ({"query": None}, "query and response are required"),
        ({"response": 5}, "response must be text"),
        ({"contexts": 5}, "contexts must be a list"),
        ({"raters": {"faithfulness": 1}}, "raters.faithfulness must be a list"),
        ({"sample": {"release": "r"}}, "sample must hold release"),
    ],
)
def test_a_wrong_row_is_one_line_with_file_and_line_and_without_its_text(workspace, change, message):
    with pytest.raises(UserError) as fault:
        read_calibration(workspace(line(), line(**change)))
    assert str(fault.value).startswith(f"rows.jsonl: line 2: {message}")
    assert "secret words" not in str(fault.value)


def test_broken_json_names_its_line(workspace):
    with pytest.raises(UserError, match=r"^rows\.jsonl: line 2: is not JSON"):
        read_calibration(workspace(raw=json.dumps(line()).encode() + b"\n{oops\n"))


def test_labels_of_other_metrics_are_ignored(workspace):
    (row,) = read_calibration(workspace(line(human={"faithfulness": 0, "completeness": "fine"})))
    assert row.human == {"faithfulness": 0}


def test_equal_content_is_one_row_whose_labels_are_votes(workspace):
    votes = [line(human={"faithfulness": v}) for v in (1, 1, 0)]
    (row,) = read_calibration(workspace(*votes))
    assert row.human == {"faithfulness": 1}
    assert row.raters == {"faithfulness": (1.0, 1.0, 0.0)}
    (tied,) = read_calibration(workspace(*votes[1:]))
    assert tied.human == {}


def test_the_order_of_rows_in_the_file_does_not_matter(workspace):
    rows = [line(query=f"q{i}") for i in range(20)]
    forwards = [r.key for r in read_calibration(workspace(*rows))]
    backwards = [r.key for r in read_calibration(workspace(*rows[::-1]))]
    assert forwards == backwards == sorted(forwards)


def test_agreement_of_raters(workspace):
    """Three raters (1, 1, 0): a third of their pairs agree. Four rows: kappa as Fleiss (1971) gives it."""
    votes = [(1, 1, 1), (1, 1, 0), (0, 0, 0), (0, 0, 0)]
    rows = [line(query=f"q{i}", raters={"faithfulness": list(v)}) for i, v in enumerate(votes)]
    found = human_agreement(read_calibration(workspace(*rows)), "faithfulness")
    share = (1 + 1 / 3 + 1 + 1) / 4
    good = (3 + 2) / 12
    chance = good**2 + (1 - good) ** 2
    assert found["rows"] == 4
    assert found["agreement"] == pytest.approx(share)
    assert found["kappa"] == pytest.approx((share - chance) / (1 - chance))
    assert found["ci"][0] < found["kappa"] < found["ci"][1]


def test_no_row_with_two_raters_is_no_figure(workspace):
    assert human_agreement(read_calibration(workspace(line())), "faithfulness") is None


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("faithfullness", "faithfulness"),
        ("Faithfulness", "faithfulness"),
        ("faithful_ness", "faithfulness"),
        ("relevance", "relevancy"),
        ("relevency", "relevancy"),
        ("corectness", "correctness"),
        ("corrrectness", "correctness"),
        ("answer-relevancy", "answer_relevancy"),
        ("context_relevence", "context_relevancy"),
        ("guidelines", "guideline"),
    ],
)
def test_a_mistyped_metric_is_named_instead_of_losing_its_label(workspace, key, meant):
    with pytest.raises(UserError, match=rf"line 1: human\.{key}: no such metric, did you mean '{meant}'\?"):
        read_calibration(workspace(line(human={"correctness": 1, key: 0})))
    assert (
        len(read_calibration(workspace(line(human={"correctness": 1, key: None})))) == 1
    )  # holds no label that could be lost


def test_keys_that_are_no_metric_are_counted_for_the_doctor(workspace):
    rows = [json.dumps(line(query=q, human={"fluency": 1, "note": None})) for q in "abc"]
    ws = workspace(raw="\n".join([*rows, "not JSON", "[1]"]).encode())
    assert other_labels(ws) == {"fluency": 3}
