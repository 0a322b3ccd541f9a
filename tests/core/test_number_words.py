"""Numbers for people: none rounds into another statement."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragbench_dagster.text.format import decimal, p_value, percent, percent_below, points

values = st.floats(-1, 1, allow_nan=False)


@given(values)
def test_zero_and_one_stand_for_themselves_alone(value):
    for text in (decimal(value), decimal(value, signed=True)):
        if abs(float(text)) in (0.0, 1.0):
            assert abs(float(text) - value) < 1e-11
    assert math.isclose(float(decimal(value)), value, abs_tol=5.1e-4)


@given(st.floats(1e-9, 1 - 1e-9))
def test_a_percentage_between_is_never_0_or_100(share):
    assert percent(share) not in ("0 %", "100 %")
    assert math.isclose(float(percent(share).removesuffix(" %")) / 100, share, abs_tol=5.1e-4)


@given(st.floats(0, 1), st.floats(0, 1))
def test_what_lies_below_a_limit_does_not_read_as_the_limit(share, limit):
    if share < limit - 1e-9:
        assert percent_below(share, limit) != percent(limit)


@given(values)
def test_points_say_zero_only_for_no_change(change):
    assert (points(change) == "0") == (abs(change) < 1e-13)


@pytest.mark.parametrize(
    ("p", "text"),
    [(0.0, "<0.0001"), (1e-9, "<0.0001"), (0.00012, "0.00012"), (0.0432, "0.043"), (0.999, ">0.99"), (1.0, "1")],
)
def test_p_values(p, text):
    assert p_value(p) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.84, "0.840"), (0.00042, "0.0004"), (0.99996, "0.99996"), (1.0, "1.000"), (0.0, "0.000")]
)
def test_decimals(value, text):
    assert decimal(value) == text
