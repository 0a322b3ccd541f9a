"""Two ids of a corpus stay two ids, whatever they look like."""

from ragbench_dagster.settings import Scrub
from ragbench_dagster.traffic.scrubbing import build_scrubber, safe_id

PHONES = ["+1 212-555-0143", "+1 212-555-0144"]


def test_ids_that_look_like_phone_numbers_do_not_become_one():
    plain = build_scrubber(Scrub(ner="off")).plain
    assert plain(PHONES[0]) == plain(PHONES[1]) == "<PHONE_NUMBER>"
    one, two = (safe_id(text, plain) for text in PHONES)
    assert one != two
    assert "555" not in one + two
    assert safe_id(PHONES[0], plain) == one


def test_an_ordinary_id_is_left_as_it_is():
    plain = build_scrubber(Scrub(ner="off")).plain
    assert [safe_id(i, plain) for i in ("CDC-569", "docs/setup.md#3")] == ["CDC-569", "docs/setup.md#3"]
