"""What is sent to a provider and what is kept of its replies holds no personal data and no key."""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from ragbench_dagster.calibration.labelled_answers import read_calibration
from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.judge_runner import judge_items, stage_judge
from ragbench_dagster.evaluation.kept_texts import RAW_LIMIT, item_with, kept_verdict, texts_of_item
from ragbench_dagster.records import Item, Verdict
from ragbench_dagster.settings import Judge, Scrub, parse_settings
from ragbench_dagster.store import Workspace
from ragbench_dagster.traffic.scrubbed_rows import Texts, scrub_handed_in
from ragbench_dagster.traffic.scrubbing import build_scrubber
from ragbench_dagster.traffic.scrubbing.redact import redact
from tests.support.fake_provider import Act, Seen

MAIL = "canary.person@nowhere.example"
PHONE = "+1 212-555-0143"
KEY = "kq7-CANARY-0f4x9w2b"  # no shape of any provider's key

CALIBRATION = {
    "id": MAIL,
    "query": f"who is {MAIL}?",
    "contexts": [f"{MAIL} is reached at {PHONE}"],
    "response": f"Call {PHONE}.",
    "reference": f"{MAIL}, {PHONE}",
    "history": [f"i am {MAIL}"],
    "human": {"faithfulness": 1},
}


def everything(folder: Path) -> bytes:
    return b"".join(p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file())


def quoting(seen: Seen) -> Act:
    """A judge that repeats the prompt, adds what nobody told it, and names itself after the key."""
    return Act(f"YES\nbecause of {MAIL} ({PHONE}), key {KEY}", model=f"m {MAIL} {KEY}")


def told(seen: Seen) -> str:
    """What we told the judge; a reply that is asked for again goes back to it as its own words."""
    return "\n".join(m["content"] for m in seen.body["messages"] if m["role"] != "assistant")


def quoting_all(seen: Seen) -> Act:
    """A judge that repeats the whole prompt, which no verdict can be read from."""
    return Act(f"{seen.prompt} {MAIL} ({PHONE}), key {KEY}", model=f"m {MAIL} {KEY}")


@pytest.fixture
def handed_in(tmp_path: Path) -> Path:
    folder = tmp_path / "calibration"
    folder.mkdir()
    (folder / "a.jsonl").write_text(json.dumps(CALIBRATION) + "\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(("plan", "status"), [(quoting, "scored"), (quoting_all, "unparsable")])
def test_calibration_is_scrubbed_before_it_is_judged_and_the_reply_before_it_is_kept(
    plan,
    status: str,
    handed_in: Path,
    serve,
    judge_of: Callable[..., Judge],
    workspace,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    provider = serve(plan)
    ws = workspace(judge_of(provider.base))
    monkeypatch.setenv("RAGBENCH_TEST_KEY", KEY)
    (row,) = read_calibration(ws)
    assert row.item.query == "who is <EMAIL_ADDRESS_1>?"
    assert row.item.contexts == ("<EMAIL_ADDRESS_1> is reached at <PHONE_NUMBER_1>",)
    assert row.item.reference == "<EMAIL_ADDRESS_1>, <PHONE_NUMBER_1>"
    assert row.item.history == ("i am <EMAIL_ADDRESS_1>",)
    (verdict,) = judge_items(ws, "faithfulness", [row.item])
    assert verdict.status == status
    assert provider.seen
    kept = everything(ws.store)
    for canary in (MAIL, PHONE, KEY):
        assert not any(canary in told(seen) for seen in provider.seen)
        assert canary.encode() not in kept
    with sqlite3.connect(ws.store / "ledger.db") as db:
        ((raw, served),) = db.execute("SELECT raw, served_model FROM verdicts").fetchall()
    assert "<EMAIL_ADDRESS_" in raw
    assert "<SECRET_" in raw
    assert KEY not in served


def test_a_row_is_spelled_as_in_a_release_and_drawn_rows_stay_as_they_are(tmp_path: Path) -> None:
    """Placeholders of a release pass through; a raw row gets those that the release would have given it."""
    ws = Workspace(tmp_path, parse_settings(""))
    released = build_scrubber(ws.settings.scrub).request(f"who is {MAIL}?", f"Call {PHONE}.", [f"{MAIL}: {PHONE}"])
    raw = Texts(f"who is {MAIL}?", f"Call {PHONE}.", (f"{MAIL}: {PHONE}",))
    drawn = Texts(released.query, released.response, tuple(released.contexts))
    assert scrub_handed_in(ws, "calibration", [raw, drawn]) == [drawn, drawn]


def test_rows_are_scrubbed_once_and_the_cache_holds_no_raw_text(tmp_path: Path, monkeypatch) -> None:
    ws = Workspace(tmp_path, parse_settings(""))
    rows = [Texts(f"who is {MAIL}?"), Texts("what is a flock?", "a group", ("x",), ("y",))]
    first = scrub_handed_in(ws, "calibration", rows)
    assert MAIL.encode() not in everything(tmp_path)
    before = (ws.store / "cache" / "handed-in" / "calibration.json").read_bytes()
    monkeypatch.setattr("ragbench_dagster.traffic.scrubbed_rows.scrub_texts", lambda *_: pytest.fail("scrubbed again"))
    assert scrub_handed_in(ws, "calibration", rows) == first
    assert (ws.store / "cache" / "handed-in" / "calibration.json").read_bytes() == before
    other = Workspace(tmp_path, parse_settings("scrub: {allow: [flock]}"))
    with pytest.raises(pytest.fail.Exception):
        scrub_handed_in(other, "calibration", rows)


def test_rows_of_a_stage_are_scrubbed_before_a_provider_or_the_ledger_sees_them(
    serve, judge_of: Callable[..., Judge], workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = serve(quoting)
    judge = judge_of(provider.base)
    ws = workspace(judge)
    row = {k: v for k, v in CALIBRATION.items() if k != "human"}
    for place in (ws, None):
        (out,) = stage_judge([row], "faithfulness", judge, place)
        assert out["query"] == row["query"], "the row itself is the caller's own"
        assert MAIL not in out["feedback"]
    assert not any(MAIL in seen.prompt or PHONE in seen.prompt for seen in provider.seen)
    assert MAIL.encode() not in everything(ws.store)


@pytest.mark.parametrize(
    "spelled", [KEY, base64.b64encode(KEY.encode()).decode(), f"{KEY[:8]}' + '{KEY[8:]}", KEY[:14]]
)
@pytest.mark.parametrize("status", [401, 400, 503])
def test_a_key_and_an_address_that_a_gateway_quotes_in_an_error_are_not_shown_or_kept(
    status: int, spelled: str, serve, judge_of: Callable[..., Judge], workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"error": {"message": f"Account {MAIL}: key {spelled} refused"}}
    provider = serve(lambda seen: Act(status=status, raw=body))
    ws = workspace(judge_of(provider.base, max_attempts=1))
    monkeypatch.setenv("RAGBENCH_TEST_KEY", KEY)
    shown = ""
    try:
        (verdict,) = judge_items(ws, "faithfulness", [Item("e", "q", "r", ("c",))])
        shown = verdict.feedback
    except UserError as fault:
        shown = str(fault)
    assert str(status) in shown
    assert MAIL not in shown
    assert spelled not in shown
    kept = everything(ws.store)
    assert spelled.encode() not in kept
    assert MAIL.encode() not in kept


def test_an_address_at_the_place_of_the_cut_does_not_stay_in_half() -> None:
    for before in range(RAW_LIMIT - 40, RAW_LIMIT + 1, 3):
        raw = "x" * before + " " + MAIL + " y" * 20
        assert "canary" not in kept_verdict(Verdict("scored", 1.0, raw=raw), Scrub(ner="off")).raw


def test_texts_of_an_item_go_and_come_back() -> None:
    for item in (
        Item("e", "q", "r", ("a", "b"), "ref", ("h",), "second"),
        Item("e", "q", "r", (), None, (), "second"),
        Item("e", "q", "", ("a",), "ref"),
    ):
        assert item_with(item, texts_of_item(item)) == item


def test_a_key_is_masked_before_a_rule_for_other_keys_leaves_a_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "fern41!sk-abcd1234zz")
    assert redact("wrong key fern41!sk-abcd1234zz") == "wrong key [...]"
