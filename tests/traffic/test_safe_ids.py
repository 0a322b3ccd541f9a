"""Two ids of a corpus stay two ids, whatever they look like, and nobody without the key finds them again."""

from pathlib import Path

from ragbench_dagster.settings import Scrub
from ragbench_dagster.store import Workspace, digest
from ragbench_dagster.traffic.scrubbing import build_scrubber, safe_id

PHONES = ["+1 212-555-0143", "+1 212-555-0144"]


def workspace(folder: Path) -> Workspace:
    folder.mkdir()
    return Workspace.open(folder)


def test_ids_that_look_like_phone_numbers_do_not_become_one(tmp_path):
    plain = build_scrubber(Scrub(ner="off")).plain
    keyed = workspace(tmp_path / "a").keyed
    assert plain(PHONES[0]) == plain(PHONES[1]) == "<PHONE_NUMBER>"
    one, two = (safe_id(text, plain, keyed) for text in PHONES)
    assert one != two
    assert "555" not in one + two
    assert safe_id(PHONES[0], plain, keyed) == one


def test_the_mark_cannot_be_found_by_trying_all_numbers(tmp_path):
    """Two workspaces have two marks of one id, and no mark is a hash of the id alone."""
    plain = build_scrubber(Scrub(ner="off")).plain
    marks = {safe_id(PHONES[0], plain, workspace(tmp_path / name).keyed).rsplit("-")[-1] for name in "ab"}
    assert len(marks) == 2
    assert not marks & {digest("id", PHONES[0])[:6], digest(PHONES[0])[:6]}


def test_an_ordinary_id_is_left_as_it_is(tmp_path):
    plain, keyed = build_scrubber(Scrub(ner="off")).plain, workspace(tmp_path / "a").keyed
    assert [safe_id(i, plain, keyed) for i in ("CDC-569", "docs/setup.md#3")] == ["CDC-569", "docs/setup.md#3"]
