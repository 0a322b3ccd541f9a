"""Names for trackers: every tracker takes them, no two meet, and they do not depend on their neighbours."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ragbench_dagster.reporting.tracking.record import joined, part

# MLflow's validate_param_and_metric_name, and W&B's documented pattern for a metric's name
MLFLOW = re.compile(r"[/\w.\- :]*")
WANDB = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*")
LOOKALIKES = [
    "hit_rate@5",
    "hit_rate_at_5",
    "hit.rate@5",
    "hit rate@5",
    "R&D",
    "R_D",
    "r&d",
    "ä",
    "a\u0308",
    "",
    " ",
    "/",
]

names = st.one_of(
    st.text(max_size=200),
    st.from_regex(r"[a-z_]{1,6}(@|_at_)?[0-9]{0,2}", fullmatch=True),
    st.sampled_from(LOOKALIKES),
)


@given(names)
@example("x" * 10_000)
@example("\x00\u202e😀")
def test_every_tracker_takes_every_name(name):
    spelled = part(name)
    assert WANDB.fullmatch(spelled)
    assert MLFLOW.fullmatch(spelled)
    assert len(spelled) <= 80


@given(names, names)
@example("hit_rate@5", "hit_rate_at_5")
@example("R&D", "R D")
def test_two_names_never_become_one(one, other):
    assert (part(one) == part(other)) == (one == other)


def test_a_spelled_name_is_not_mistaken_for_a_plain_one():
    assert part(part("R&D")) != part("R&D")
    assert len({part(n) for n in LOOKALIKES}) == len(set(LOOKALIKES))


@pytest.mark.parametrize(
    ("name", "spelled"), [("faithfulness", "faithfulness"), ("hit_rate@5", "hit_rate_at_5"), ("ndcg@10", "ndcg_at_10")]
)
def test_the_usual_names_stay_readable(name, spelled):
    assert part(name) == spelled


def test_parts_are_joined_where_trackers_make_sections():
    assert joined("bm25", "hit_rate@5", "low") == "bm25/hit_rate_at_5/low"
    assert joined("a/b", "c") != joined("a", "b/c")
