"""The independent look at what was written, and the release that waits for it."""

import datetime as dt

import pytest

from ragbench_dagster.errors import UserError
from ragbench_dagster.orchestration.checks import no_personal_data_left
from ragbench_dagster.records import SCRUBBED
from ragbench_dagster.store import Workspace, rows_table, write_table
from ragbench_dagster.traffic.privacy import require_clean, verify_days
from ragbench_dagster.traffic.scan import left_over

DAY = "2026-11-20"


def written(tmp_path, text, settings=""):
    """A workspace whose day holds `text` as it is, in an answer's passage."""
    (tmp_path / "ragbench.yaml").write_text(settings, encoding="utf-8")
    ws = Workspace.open(tmp_path)
    row = {
        "request_key": "k", "day": dt.date(2026, 11, 20), "query": "why?", "history": [], "weight": 1.0,
        "source_nodes": [{"node_id": "n", "score": 1.0, "text": text}], "follow_up": False, "question": True,
    }  # fmt: skip
    write_table(ws.traffic(DAY) / "scrubbed.parquet", rows_table([row], SCRUBBED))
    return ws


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("mail ada@example.com", "EMAIL_ADDRESS"),
        ("card 4111 1111 1111 1111", "CREDIT_CARD"),
        ("from 203.0.113.7", "IP_ADDRESS"),
        ("iban DE89370400440532013000", "IBAN_CODE"),
    ],
)
def test_what_a_recogniser_missed_holds_the_release(tmp_path, text, kind):
    ws = written(tmp_path, text)
    assert verify_days(ws, [DAY]) == {DAY: {kind: 1}}
    with pytest.raises(UserError) as fault:
        require_clean(ws, "2026-11-24")
    assert str(fault.value).startswith(f"{DAY}: personal data left after scrubbing (1 x {kind})")
    assert text.split()[-1] not in str(fault.value)


def test_a_day_that_was_never_searched_is_not_clean(tmp_path):
    """kill -9 between scrubbing and the search; the logs of that day may be deleted by now."""
    ws = written(tmp_path, "mail ada@example.com")
    assert left_over(ws, DAY) is None
    assert not no_personal_data_left(ws, DAY)[0]
    with pytest.raises(UserError, match="1 x EMAIL_ADDRESS"):
        require_clean(ws, "2026-11-24")
    assert left_over(ws, DAY) == {"EMAIL_ADDRESS": 1}
    assert left_over(ws, "2026-11-21") == {}


def test_clean_text_holds_nothing(tmp_path):
    ws = written(tmp_path, "mail <EMAIL_ADDRESS_1>, version 4.18.0.1")
    assert verify_days(ws, [DAY]) == {DAY: {}}
    require_clean(ws, DAY)


@pytest.mark.parametrize("settings", ["scrub: {allow: [ada@example.com]}", "scrub: {entities: {EMAIL_ADDRESS: false}}"])
def test_what_the_settings_allow_is_no_finding(tmp_path, settings):
    ws = written(tmp_path, "mail ada@example.com", settings)
    assert verify_days(ws, [DAY]) == {DAY: {}}
