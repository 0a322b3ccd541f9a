"""Metadata is small, plain and finite."""

import math

import numpy as np

from ragbench_dagster.orchestration.assets.bodies import MAX_BYTES, markdown, metadata


def test_numbers_that_would_break_a_run_or_a_page_never_get_there():
    found = metadata(
        a=np.float64(0.5), b=np.int64(3), c=math.nan, d=math.inf, e=None, f=np.float64("nan"), g="x" * 9999
    )
    assert found == {"a": 0.5, "b": 3, "g": "x" * MAX_BYTES}
    assert type(found["a"]) is float
    assert type(found["b"]) is int


def test_a_table_is_capped_and_escaped():
    text = markdown(["name", "n"], [["<script>|x|`y`[a](b)\n::error::", 1.0]] * 500).value
    assert len(text.encode()) <= MAX_BYTES
    assert "<script>" not in text
    assert "more rows are in the store" in text
    assert "\n::error" not in text
