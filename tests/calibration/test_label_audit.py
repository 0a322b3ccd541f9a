"""label audit and label changes: drawn blind, counted as random samples, and used where they describe the night."""

import json

import numpy as np
import pyarrow as pa
import pytest

from ragbench_dagster.calibration.label_audit import audit_counts, draw_audit, draws_path, read_draws
from ragbench_dagster.calibration.label_changes import draw_changes, labelled_changes
from ragbench_dagster.calibration.labelled_answers import read_calibration
from ragbench_dagster.calibration.sentinel import labelled
from ragbench_dagster.cli import app
from ragbench_dagster.errors import UserError
from ragbench_dagster.reporting.erased_nights import erase_drawn_labels
from ragbench_dagster.reporting.gate.decide import decide
from ragbench_dagster.reporting.summary import summarise
from ragbench_dagster.store import read_json, read_table, write_json, write_table
from tests.support.night_maker import NightMaker

METRIC = "faithfulness"
DAY = "2026-11-20"  # a Friday; its Monday is the 16th
SETTINGS = f"metrics: [{METRIC}]\nsystems: {{s: {{kind: logged}}}}\n"


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def fill(path, label):
    """Write people's labels: `label` of each row, None for unsure."""
    rows = lines(path)
    for row in rows:
        row["human"][METRIC] = label(row)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def made_in(folder, settings=SETTINGS, n=400, rate=0.75, days=(DAY,)):
    maker = NightMaker(folder, settings, n)
    maker.verdicts = (np.random.default_rng(1).random(n) < rate).astype(float)
    for day in days:
        maker.night({"s": {METRIC: maker.verdicts}}, day=day)
        maker.calibrated([METRIC], day=day)
    return maker


@pytest.fixture
def made(tmp_path):
    return made_in(tmp_path)


def verdict_of(maker, row):
    """What the judge said of a drawn row."""
    return int(maker.verdicts[int(row["query"].split()[1])])


def corrected(maker, day=DAY):
    return summarise(maker.ws, day)["systems"]["s"]["metrics"][METRIC]["overall"]["corrected"]


def test_an_audit_is_half_passed_half_failed_and_tells_nothing_of_the_verdict(made):
    path, found = draw_audit(made.ws, DAY, "s", METRIC)
    rows = lines(path)
    assert path.name == f"audit-s-{METRIC}-2026-11-16.jsonl"
    assert found == {"passed": 13, "failed": 13, "week_passed": int(made.verdicts.sum()), "week_n": 400}
    verdicts = [verdict_of(made, row) for row in rows]
    assert sum(verdicts) == 13
    assert 0 < sum(verdicts[:13]) < 13  # in an order that tells nothing
    assert {key for row in rows for key in row} == {
        "id", "query", "history", "contexts", "response", "reference", "human", "draw",
    }  # fmt: skip
    assert all(row["human"] == {METRIC: None} for row in rows)


def test_drawn_rows_are_no_rows_of_the_calibration_set(made):
    path, _ = draw_audit(made.ws, DAY, "s", METRIC)
    fill(path, lambda row: 1)
    rows = read_calibration(made.ws)
    assert len(rows) == 26
    assert labelled(rows, METRIC) == []


def test_a_verdict_with_too_few_answers_is_filled_up_by_the_other(tmp_path):
    maker = made_in(tmp_path)
    maker.verdicts[:] = 1.0
    maker.verdicts[:5] = 0.0
    maker.night({"s": {METRIC: maker.verdicts}})
    _, found = draw_audit(maker.ws, DAY, "s", METRIC)
    assert (found["passed"], found["failed"]) == (21, 5)


def test_a_week_is_drawn_once_and_the_next_week_draws_other_answers(tmp_path):
    maker = made_in(tmp_path, days=("2026-11-13", DAY))
    first, _ = draw_audit(maker.ws, "2026-11-13", "s", METRIC)
    with pytest.raises(UserError, match="exists already"):
        draw_audit(maker.ws, "2026-11-13", "s", METRIC)
    second, _ = draw_audit(maker.ws, DAY, "s", METRIC)
    assert {row["query"] for row in lines(first)}.isdisjoint(row["query"] for row in lines(second))


@pytest.mark.parametrize(
    ("system", "metric", "day", "message"),
    [
        ("gone", METRIC, DAY, "no answer of the system 'gone' was judged"),
        ("s", "mrr@10", DAY, "no judged metric"),
        ("s", METRIC, "2026-11-29", "was not calibrated"),
    ],
)
def test_what_cannot_be_audited_is_one_line(made, system, metric, day, message):
    with pytest.raises(UserError, match=message):
        draw_audit(made.ws, day, system, metric)
    assert not draws_path(made.ws).exists()


def test_labels_count_by_verdict_for_28_days_and_for_this_judge_alone(made):
    path, _ = draw_audit(made.ws, DAY, "s", METRIC)
    # people agree but for two answers that the judge passed, and leave one open
    wrong = [row["query"] for row in lines(path) if verdict_of(made, row)][:2]
    left = next(row["query"] for row in lines(path) if not verdict_of(made, row))
    fill(path, lambda row: None if row["query"] == left else int(verdict_of(made, row) and row["query"] not in wrong))
    rows = read_calibration(made.ws)
    found = audit_counts(made.ws, DAY, rows, "s", METRIC, "same")
    assert (found.passed, found.passed_good, found.failed, found.failed_good, found.unsure) == (13, 11, 12, 0, 1)
    assert (found.week_passed, found.week_n) == (int(made.verdicts.sum()), 400)
    assert audit_counts(made.ws, "2026-12-17", rows, "s", METRIC, "same") == found
    assert audit_counts(made.ws, "2026-12-18", rows, "s", METRIC, "same") is None
    assert audit_counts(made.ws, "2026-11-19", rows, "s", METRIC, "same") is None  # not drawn yet
    assert audit_counts(made.ws, DAY, rows, "s", METRIC, "another judge") is None
    assert audit_counts(made.ws, DAY, rows, "t", METRIC, "same") is None


def test_an_audit_that_nobody_began_does_not_count(made):
    draw_audit(made.ws, DAY, "s", METRIC)
    assert audit_counts(made.ws, DAY, read_calibration(made.ws), "s", METRIC, "same") is None
    assert corrected(made)["method"] == "calibration"


def test_sixty_labels_replace_the_calibration_rows(made):
    """The rows say that the judge is nearly perfect; people find a third of what it passes bad."""
    path, _ = draw_audit(made.ws, DAY, "s", METRIC, 100)
    before = corrected(made)
    bad = {row["query"] for k, row in enumerate(lines(path)) if k % 3 == 0}
    fill(path, lambda row: int(verdict_of(made, row) and row["query"] not in bad))
    after = corrected(made)
    assert (before["method"], after["method"]) == ("calibration", "audit")
    assert after["reason"] == "100 labels of the last 28 days' answers"
    assert after["audit"] == {"labels": 100, "unsure": 0}
    assert after["high"] < before["low"]


def test_thirty_labels_that_contradict_the_rows_refuse_the_correction(made):
    path, _ = draw_audit(made.ws, DAY, "s", METRIC, 40)
    fill(path, lambda row: 0)
    found = corrected(made)
    assert (found["method"], found["value"]) == ("none", None)
    assert "the calibration rows do not describe these answers" in found["reason"]
    fill(path, lambda row: verdict_of(made, row))
    assert corrected(made)["method"] == "calibration"


def test_too_many_open_answers_are_no_random_sample(made):
    path, _ = draw_audit(made.ws, DAY, "s", METRIC, 100)
    easy = {row["query"] for row in lines(path)[:85]}
    fill(path, lambda row: verdict_of(made, row) if row["query"] in easy else None)
    assert "15 of 100 answers drawn for the audit are not labelled" in corrected(made)["reason"]


def test_a_draws_file_that_was_spoilt_is_one_line(made):
    draw_audit(made.ws, DAY, "s", METRIC)
    write_json(draws_path(made.ws), {"x": 3})
    with pytest.raises(UserError, match=r"draws\.json: must hold what was drawn"):
        read_draws(made.ws, "audit")


@pytest.fixture
def two_nights(tmp_path):
    """Tonight 250 of 600 answers changed; verdicts show no loss, people see one."""
    text = SETTINGS + f"thresholds: {{{METRIC}: {{margin: 0.05, baseline: '2026-11-19'}}}}\n"
    maker = NightMaker(tmp_path, text, 600)
    rng = np.random.default_rng(2)
    maker.verdicts = (rng.random(600) < 0.8).astype(float)
    new = maker.verdicts.copy()
    new[350:] = (rng.random(250) < 0.8).astype(float)
    for day, values in (("2026-11-19", maker.verdicts), (DAY, new)):
        maker.night({"s": {METRIC: values}}, day=day)
        maker.calibrated([METRIC], day=day)
    path = maker.ws.night(DAY, "s") / "responses.parquet"
    table = read_table(path)
    for name, word in (("response", "new response to"), ("answer_hash", "new")):
        values = table[name].to_pylist()
        values[350:] = [f"{word} {k}" for k in range(250)]
        table = table.set_column(table.schema.get_field_index(name), name, pa.array(values, pa.string()))
    write_table(path, table)
    maker.changed = {
        "gained": int((new > maker.verdicts).sum()), "lost": int((new < maker.verdicts).sum()),
        "same": 250 - int((new != maker.verdicts).sum()), "unchanged": 350,
    }  # fmt: skip
    return maker


def test_changed_pairs_are_drawn_by_kind_and_tell_neither_verdict_nor_night(two_nights):
    path, found = draw_changes(two_nights.ws, DAY, "2026-11-19", "s", METRIC)
    changed = two_nights.changed
    wanted = min(30, changed["gained"]) + min(30, changed["lost"]) + 60
    assert found == {**changed, "drawn": wanted}
    rows = lines(path)
    assert len(rows) == 2 * wanted
    assert all(row["human"] == {METRIC: None} and row.keys().isdisjoint({"old", "new", "day"}) for row in rows)
    with pytest.raises(UserError, match="exists already"):
        draw_changes(two_nights.ws, DAY, "2026-11-19", "s", METRIC)


def test_what_people_saw_replaces_what_the_judge_showed(two_nights):
    ws = two_nights.ws
    before = decide(ws, DAY)
    path, found = draw_changes(ws, DAY, "2026-11-19", "s", METRIC)
    assert decide(ws, DAY).rows == before.rows  # nothing is labelled yet

    def people(row):
        """Every new answer is bad, every old one good."""
        return int(not row["response"].startswith("new"))

    fill(path, people)
    change = labelled_changes(ws, read_calibration(ws), DAY, "s", METRIC, "same")["2026-11-19"]
    assert change.labelled == found["drawn"]
    assert change.value == pytest.approx(-250 / 600)
    gate = decide(ws, DAY)
    assert gate.verdict == "fail"
    (row,) = (r for r in gate.rows if r.part == "overall")
    assert (row.basis, row.value) == ("pairs", pytest.approx(-250 / 600))

    fill(path, lambda row: 1)  # people see no change at all
    assert decide(ws, DAY).verdict == "pass"


def test_pairs_left_open_are_no_random_sample(two_nights):
    ws = two_nights.ws
    before = decide(ws, DAY)
    path, _ = draw_changes(ws, DAY, "2026-11-19", "s", METRIC)
    some = {row["id"] for row in lines(path)[:60]}
    fill(path, lambda row: 1 if row["id"] in some else None)
    found = labelled_changes(ws, read_calibration(ws), DAY, "s", METRIC, "same")["2026-11-19"]
    assert "not a random sample" in found
    assert decide(ws, DAY).rows == before.rows


def test_no_changed_answer_and_another_judge_are_one_line(made):
    made.night({"s": {METRIC: made.verdicts}}, day="2026-11-19")
    made.calibrated([METRIC], day="2026-11-19")
    with pytest.raises(UserError, match="no answer of 's' that both nights judged"):
        draw_changes(made.ws, DAY, "2026-11-19", "s", METRIC)
    facts = read_json(made.ws.night(DAY) / "calibration.json")
    facts["metrics"][METRIC]["identity"]["hash"] = "other"
    write_json(made.ws.night(DAY) / "calibration.json", facts)
    with pytest.raises(UserError, match="is not the one of 2026-11-19"):
        draw_changes(made.ws, DAY, "2026-11-19", "s", METRIC)


def test_the_commands_say_what_they_drew(two_nights, capsys):
    (two_nights.ws.root / "ragbench.yaml").write_text(
        SETTINGS + f"thresholds: {{{METRIC}: {{margin: 0.05, baseline: '2026-11-19'}}}}\n"
    )
    summarise(two_nights.ws, DAY)
    root = str(two_nights.ws.root)
    app(["label", "audit", "--system", "s", "--workspace", root, "--date", DAY], standalone_mode=False)
    assert "13 answers that the judge passed and 13 that it failed" in " ".join(capsys.readouterr().err.split())
    app(["label", "changes", "--system", "s", "--metric", METRIC, "--workspace", root], standalone_mode=False)
    said = " ".join(capsys.readouterr().err.split())
    assert "since 2026-11-19" in said, said


def test_a_person_who_is_forgotten_leaves_the_draws_too(two_nights):
    """The rows go, and the draw is as if they had never been drawn: not unsure, not half a pair."""
    ws = two_nights.ws
    audit, _ = draw_audit(ws, DAY, "s", METRIC)
    changes, found = draw_changes(ws, DAY, "2026-11-19", "s", METRIC)
    for path in (audit, changes):
        fill(path, lambda row: 1)
    drawn = read_json(draws_path(ws))
    first = next(iter(drawn[audit.stem]["rows"].values()))
    pair = drawn[changes.stem]["pairs"][0]
    other = drawn[changes.stem]["rows"][pair["new"]]
    gone = {first["release"]: {first["example_id"]}}
    removed = erase_drawn_labels(ws, gone, {first["release"]: "next-release"}, {other["answer_hash"]})
    kept = read_json(draws_path(ws))
    text = draws_path(ws).read_text() + audit.read_text() + changes.read_text()
    assert first["example_id"] not in draws_path(ws).read_text()
    assert other["answer_hash"] not in text
    assert removed >= 2
    assert len(lines(audit)) == 26 - 1 == len(kept[audit.stem]["passed"])
    assert pair not in kept[changes.stem]["pairs"]
    assert {place["release"] for place in kept[audit.stem]["rows"].values()} == {"next-release"}
    counts = audit_counts(ws, DAY, read_calibration(ws), "s", METRIC, "same")
    assert (counts.labels, counts.unsure) == (25, 0)
    assert labelled_changes(ws, read_calibration(ws), DAY, "s", METRIC, "same")["2026-11-19"].labelled >= (
        found["drawn"] - 3
    )
