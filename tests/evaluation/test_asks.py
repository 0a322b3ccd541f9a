"""Which questions are asked several times a night, and when."""

from hypothesis import given
from hypothesis import strategies as st

from ragbench_dagster.evaluation.asks import ASKS, asks_for, heavy_examples
from ragbench_dagster.settings import parse_settings


def test_a_question_is_heavy_from_half_a_percent_of_the_requests() -> None:
    rest = {f"e{i:03}": 1.0 for i in range(394)}
    assert heavy_examples({"b": 2.0, "a": 4.0, **rest}) == ["a", "b"]  # 2 of 400
    assert heavy_examples({"b": 2.0, "a": 4.0, "x": 1.0, **rest}) == ["a"]  # 2 of 401
    assert heavy_examples({}) == []


@given(st.dictionaries(st.text(max_size=3), st.floats(0.01, 1e6), max_size=400))
def test_there_are_never_more_than_two_hundred(weights: dict[str, float]) -> None:
    found = heavy_examples(weights)
    assert len(found) <= 200
    assert found == sorted(found)


def test_asked_again_only_where_a_margin_counts_requests_and_answers_can_vary() -> None:
    def asks(threshold: str, fixed: bool = False, sampled: bool = False) -> int:
        return asks_for(parse_settings(f"thresholds: {{correctness: {threshold}}}"), fixed, sampled)

    assert asks("{margin: 0.03, per: request}") == asks("{margin: 0.03, per: both}") == ASKS
    assert asks("{margin: 0.03}") == asks("{min: 0.8, per: request}") == 1
    assert asks("{margin: 0.03, per: request}", fixed=True) == 1
    assert asks("{margin: 0.03, per: request}", sampled=True) == 1
    assert asks_for(parse_settings(""), False) == 1
