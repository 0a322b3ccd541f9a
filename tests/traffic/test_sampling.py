"""Bottom-k sampling: how many, who, with which weight, and that a higher rate only adds."""

import math
from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragbench_dagster.settings import Sample
from ragbench_dagster.traffic.sampling import choose, kept_of, rank

rates = st.integers(0, 100).map(lambda n: n / 100)
days = st.lists(st.sampled_from("abcdef"), max_size=120)


def ranks(n: int, salt: str = "v1") -> list[int]:
    return [rank(salt, f"r{i}") for i in range(n)]


@pytest.mark.parametrize(
    ("n", "rate", "least", "kept"),
    [(0, 0.1, 5, 0), (1, 0.1, 0, 1), (100, 0.07, 0, 7), (30, 0.1, 0, 3), (31, 0.1, 0, 4), (3, 0.1, 5, 3),
     (100, 0.1, 5, 10), (20, 0.1, 5, 5), (10, 1.0, 0, 10), (10, 0.0, 0, 0), (10, 0.0, 2, 2)],
)  # fmt: skip
def test_how_many_are_kept(n, rate, least, kept):
    assert kept_of(n, rate, least) == kept


@given(st.integers(0, 10_000), rates)
def test_kept_is_the_ceiling_of_the_written_rate(n, rate):
    assert kept_of(n, rate, 0) == math.ceil(Decimal(repr(rate)) * n)


@given(days, rates, st.integers(1, 6))
def test_each_category_keeps_its_share_or_its_floor_and_weighs_what_it_was(strata, rate, least):
    found = choose(ranks(len(strata)), strata, Sample(rate=rate, min_per_category=least))
    total, kept = Counter(strata), Counter(strata[at] for at in found)
    weights: Counter[str] = Counter()
    for at, weight in found.items():
        weights[strata[at]] += weight
    for category, n in total.items():
        assert kept[category] == min(n, max(math.ceil(Decimal(repr(rate)) * n), least))
        assert weights[category] == pytest.approx(n)


@given(days, rates, rates, st.integers(0, 6))
def test_raising_the_rate_only_adds_rows(strata, one, other, least):
    low, high = sorted((one, other))
    order = ranks(len(strata))
    few = choose(order, strata, Sample(rate=low, min_per_category=least))
    many = choose(order, strata, Sample(rate=high, min_per_category=least))
    assert set(few) <= set(many)


@given(days, rates, st.integers(0, 6), st.randoms())
def test_order_of_the_lines_does_not_matter(strata, rate, least, random):
    order = ranks(len(strata))
    shuffled = list(range(len(strata)))
    random.shuffle(shuffled)
    sample = Sample(rate=rate, min_per_category=least)
    plain = choose(order, strata, sample)
    mixed = choose([order[i] for i in shuffled], [strata[i] for i in shuffled], sample)
    assert {shuffled[at]: w for at, w in mixed.items()} == pytest.approx(plain)


@given(days.filter(bool), rates)
def test_without_a_floor_the_day_keeps_the_rate_and_not_one_of_each_category(strata, rate):
    found = choose(ranks(len(strata)), strata, Sample(rate=rate, min_per_category=0))
    assert len(found) == math.ceil(Decimal(repr(rate)) * len(strata))
    assert sum(found.values()) == pytest.approx(len(strata) if found else 0)


def test_another_salt_draws_another_sample():
    strata = ["a"] * 1000
    one = set(choose(ranks(1000, "v1"), strata, Sample()))
    other = set(choose(ranks(1000, "v2"), strata, Sample()))
    assert len(one) == len(other) == 100
    # Two independent samples of 10 % share about 10 of 100 rows (hypergeometric: 10 +- 2.8).
    assert len(one & other) < 25


def test_salt_and_id_cannot_be_confused():
    assert rank("v1", "2") != rank("v", "12")


def test_selection_is_unbiased_over_ids():
    """Mean position of the kept is that of all: the hash does not favour early or late ids (chi-square, 9 df)."""
    found = choose(ranks(20_000), ["a"] * 20_000, Sample())
    buckets = Counter(at // 2000 for at in found)
    expected = len(found) / 10
    assert sum((buckets[b] - expected) ** 2 / expected for b in range(10)) < 27.9  # p = .001
