"""The change since an accepted night, linked over releases."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragbench_dagster.stats.change import BrokenLink, Chain, chain_linked
from tests.support.decision_tables import reference

ACCEPTED = {"a": 1, "b": 1, "c": 1, "d": 0, "e": 1, "f": 1}
SECOND = {"b": 1, "c": 0, "d": 0, "e": 1, "f": 1, "g": 1}
TONIGHT = {"b": 1, "c": 0, "d": 1, "e": 0, "f": 1, "g": 0}
REFERENCE = reference()


def test_a_chain_of_two_releases():
    found = chain_linked([ACCEPTED, SECOND], TONIGHT, least=1)
    assert isinstance(found, Chain)
    assert (found.value, found.variance, found.p_loss) == pytest.approx((-0.366667, 0.110704, 0.135226), abs=1e-6)
    assert found.interval == pytest.approx((-1.018789, 0.285456), abs=1e-6)
    assert [(link.shared, round(link.value, 6)) for link in found.links] == [(5, -0.2), (6, -0.166667)]
    assert (found.releases, found.questions) == (1, 6)


@pytest.mark.skipif(REFERENCE is None, reason="no tools/decision_reference.py")
@given(seed=st.integers(0, 2**32 - 1), releases=st.integers(1, 6))
@settings(max_examples=100, deadline=None)
def test_a_chain_equals_the_independent_implementation(seed, releases):
    rng = np.random.default_rng(seed)
    nights = [{str(i): float(rng.random() < 0.7) for i in range(5 * k, 5 * k + 40)} for k in range(releases)]
    tonight = {key: float(rng.random() < 0.7) for key in nights[-1]}
    value, variance = REFERENCE.link(nights, tonight)
    found = chain_linked(nights, tonight)
    assert (found.value, found.variance) == pytest.approx((value, variance))
    assert found.interval == pytest.approx(
        (value - 1.959963985 * variance**0.5, value + 1.959963985 * variance**0.5), abs=1e-8
    )
    alone = chain_linked(nights, tonight, clusters={key: key for night in nights for key in night})
    assert (alone.variance, alone.interval) == (pytest.approx(variance), pytest.approx(found.interval))


def test_a_link_that_shares_too_few_questions_is_refused_with_its_place():
    old = {f"q{i}": 1.0 for i in range(30)}
    new = {f"q{i}": 1.0 for i in range(15, 45)}
    assert chain_linked([old, new], new) == BrokenLink(position=0, shared=15, needed=20)
    assert chain_linked([old, old], new) == BrokenLink(position=1, shared=15, needed=20)
    assert isinstance(chain_linked([old, {**new, **{f"q{i}": 1.0 for i in range(10)}}], new), Chain)
    assert chain_linked([old], {}, least=0) == BrokenLink(position=0, shared=0, needed=1)
    with pytest.raises(ValueError, match="accepted night"):
        chain_linked([], new)


def test_questions_about_one_passage_lose_together():
    rng = np.random.default_rng(1)
    fate = rng.random(20) < 0.7
    ids = [f"{passage}/{i}" for passage in range(20) for i in range(5)]
    old = dict.fromkeys(ids, 1.0)
    new = {key: float(fate[int(key.split("/")[0])]) for key in ids}
    clusters = {key: key.split("/")[0] for key in ids}
    alone, together = chain_linked([old], new), chain_linked([old], new, clusters)
    assert alone.value == together.value
    assert together.variance == pytest.approx(5 * alone.variance)
    assert together.p_loss > alone.p_loss
    assert together.clusters == 20


def test_a_small_loss_every_night_adds_up_over_releases():
    ids = [f"q{i}" for i in range(400)]
    nights = [{key: float(i >= 4 * night) for i, key in enumerate(ids)} for night in range(1, 8)]
    found = chain_linked(nights[:-1], nights[-1])
    assert found.value == pytest.approx(-24 / 400)
    assert found.interval[1] < 0
    assert found.p_loss < 1e-4


def test_nothing_changed_is_no_certainty():
    night = {f"q{i}": 1.0 for i in range(60)}
    found = chain_linked([night, night], night)
    assert found.value == 0
    assert found.interval == pytest.approx((-0.05, 0.05))
    assert found.p_loss == 1.0
    lost = chain_linked([night], dict.fromkeys(night, 0.0))
    assert lost.p_loss < 1e-15
    assert lost.interval[1] < -0.9
