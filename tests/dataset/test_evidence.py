"""Names of things are unknown words by nature: two of them are one question's spelling only on evidence."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragbench_dagster.dataset.clusters import Form, cluster
from ragbench_dagster.dataset.dedupe import stage_dedupe
from ragbench_dagster.dataset.dictionary import is_mendable
from ragbench_dagster.dataset.release import cut_release
from ragbench_dagster.dataset.typo_evidence import is_slip
from ragbench_dagster.settings import Dedupe
from ragbench_dagster.store import Workspace
from tests.support.dataset_days import workspace, write_day, write_labels

# Names that exist, and names made up here, one letter apart; no list of ours holds the second half.
TWINS = """
kubens kubend|etcd etcs|tftp sftp|ldap ldaps|imap imaps|nats nuts|vite vitae|preact react|figma sigma|minio minion
openssl openssh|mongod mongodb|xgboost ngboost|jest nest|vue vuex|smtp smtps|mistral mixtral|fastapi fastai|gradle cradle
zentra zentro|klarix klarex|oxbeam oxbeat|nordix nordex|velora velara|quantix quantis|pyrelo pyreli|acmedb acmedc
flumo flumi|ubiq ubik|lumel lunel|tarsk tarsh|novavax novovax|hbase dbase|wexly wexlo|brunit grunit|dorvex korvex
sarplex sarples|mintora mintara|oculix ocular|plexo plexos|zydra hydra
"""
SLIPS = """
isntall install|recipts receipts|passwrod password|acount account|adress address|recieve receive|tranfer transfer
buisness business|cancle cancel|refudn refund|subscripton subscription|invioce invoice|delivary delivery|shiping shipping
paymnet payment|insurence insurance|calender calendar|seperate separate|definately definitely|wierd weird
printter printer|setings settings|notificatins notifications|upgarde upgrade|balanse balance|currancy currency
expence expense|mesage message|profle profile|dashbord dashboard|vacatiom vacation
"""


def pairs(table: str) -> list[tuple[str, str]]:
    return [(one, other) for one, other in (pair.split() for pair in table.replace("\n", "|").split("|") if pair)]


def together(one: str, other: str, *more: str, ws: Workspace | None = None) -> bool:
    rows = [{"id": i, "query": text} for i, text in enumerate((one, other, *more))]
    found = [row["cluster"] for row in stage_dedupe(rows, Dedupe(), ws)]
    return found[0] == found[1]


@pytest.mark.parametrize(("one", "other"), pairs(TWINS))
def test_two_names_each_asked_once_are_two_things(one: str, other: str) -> None:
    for frame in ("install {}", "what is {}", "how do i use {} on my laptop"):
        assert not together(frame.format(one), frame.format(other))


@pytest.mark.parametrize(("wrong", "right"), pairs(SLIPS))
def test_a_slip_of_the_hand_in_an_ordinary_word_is_mended(wrong: str, right: str) -> None:
    assert together(f"where is my {wrong} please", f"where is my {right} please")


def test_a_name_far_rarer_than_its_twin_is_an_error_unless_it_is_asked_alone() -> None:
    right, wrong = "how do i install zentrix", "how do i install zentrax"
    log = [right] * 6
    assert not together(wrong, right)
    assert together(wrong, right, *log)
    assert not together(wrong, right, *log, "zentrax price")  # asked with other words
    assert not together(wrong, right, *log, wrong)  # and too often


def test_a_long_name_with_a_letter_lost_or_doubled_is_an_error_and_with_another_letter_is_another_name() -> None:
    assert together("quota of kubernets", "quota of kubernetes")
    assert together("quota of grafanacloud", "quota of grafannacloud")
    assert not together("dose of clorazepate", "dose of clorazepete")


def test_the_words_of_the_corpus_and_the_labels_are_no_errors(tmp_path: Path) -> None:
    """ "instal" is a product here, and so is "recipts"; "zentrox" is what the corpus calls "zentrx"."""
    ws = workspace(tmp_path)
    asks = ["what is instal", "what is install", "my recipts", "my receipts", "start zentrx", "start zentrox"]
    assert together(asks[0], asks[1], ws=ws)
    assert together(asks[2], asks[3], ws=ws)
    assert not together(asks[4], asks[5], ws=ws)
    write_day(ws, "2026-11-20", asks)
    assert cut_release(ws, "2026-11-20").examples.num_rows == 4
    ws.corpus.write_text(
        '{"doc_id": "d1", "text": "Instal\\u2019s manual."}\n{"doc_id": "d2", "text": "Zentrox"}\n', encoding="utf-8"
    )
    write_labels(ws, [{"query": "what are RECIPTS", "expected_answer": "papers"}])
    assert not together(asks[0], asks[1], ws=ws)
    assert not together(asks[2], asks[3], ws=ws)
    assert together(asks[4], asks[5], ws=ws)
    assert cut_release(ws, "2026-11-20").examples.num_rows == 5  # cut anew: the corpus counts among its inputs
    ws.corpus.write_text("{broken\n", encoding="utf-8")  # whoever retrieves from it says so
    assert cut_release(ws, "2026-11-20").examples.num_rows == 5


NAME = st.text(alphabet="bdfgklmnprtvxz", min_size=3, max_size=6)


@given(NAME, st.integers(0, 5), st.sampled_from("aeiou"), st.sampled_from("bdfgklmnprtvxz"))
@settings(max_examples=200, deadline=None)
def test_two_unknown_names_with_another_letter_are_two_questions(name: str, at: int, one: str, other: str) -> None:
    names = [name[:at] + letter + name[at:] for letter in (one, other)]
    if all(map(is_mendable, names)):
        assert not together(f"install {names[0]}", f"install {names[1]}")


@given(
    st.lists(st.sampled_from(["zentrix", "zentrx", "zentrax", "klarex", "klarx"]), min_size=2, max_size=12), st.data()
)
@settings(max_examples=100, deadline=None)
def test_what_counts_as_an_error_does_not_depend_on_the_order(names: list[str], data: st.DataObject) -> None:
    rng = random.Random(data.draw(st.integers(0, 99)))
    forms = [Form(f"install {n}", requests=names.count(n), weight=names.count(n)) for n in sorted(set(names))]
    forms += [Form(f"price of {n}") for n in sorted(set(names))[:2]]
    shuffled = rng.sample(forms, len(forms))

    def groups(order: list[Form]) -> set[frozenset[str]]:
        return {frozenset(order[i].form for i in g) for g in cluster(order, Dedupe()).members().values()}

    assert groups(forms) == groups(shuffled)


@pytest.mark.parametrize(
    ("wrong", "right", "as_word", "as_name"),
    [
        ("isntall", "install", True, True),  # swapped
        ("instal", "install", True, False),  # the last letter lost
        ("nstall", "install", False, False),  # the first
        ("insstall", "install", True, True),  # doubled
        ("instaoll", "install", True, True),  # a key beside: o beside l
        ("insqtall", "install", False, False),  # a key far away
        ("imstall", "install", True, True),  # m beside n
        ("instell", "install", True, False),  # sounds alike
        ("inptall", "install", False, False),
    ],
)
def test_how_hands_slip(wrong: str, right: str, as_word: bool, as_name: bool) -> None:
    assert is_slip(wrong, right) is as_word
    assert is_slip(wrong, right, name=True) is as_name
