"""The independent check: it sees what a scrubber missed, and is quiet on what was scrubbed."""

import pytest

from ragbench_dagster.traffic.scrubbing import residual

LEFT = {
    "EMAIL_ADDRESS": "ask ana.test@example.com",
    "CREDIT_CARD": "paid with 4111-1111-1111-1111",
    "IBAN_CODE": "to GB82 WEST 1234 5698 7654 32 please",
    "US_SSN": "it is 078-05-1120",
    "IP_ADDRESS": "from 203.0.113.7",
    "PHONE_NUMBER": "ring +44 20 7946 0018",
    "URL": "open https://example.com/r?u=1&access_token=abc",
}


@pytest.mark.parametrize("entity", LEFT)
def test_what_was_left_is_counted_by_type(entity):
    assert residual(["fine", LEFT[entity]]) == {entity: 1}


@pytest.mark.parametrize(
    "text",
    [
        "<EMAIL_ADDRESS_1> and <CREDIT_CARD_2>", "4111-1111-1111-1112", "GB82 WEST 1234 5698 7654 33", "000-12-3456",
        "v4.18.0.1 to 4.19.2.0", "300.1.1.1", "https://example.com/docs?page=2", "session 46093154-8150-4271-ad3e-c0ffee12d0aa",
        "+1", "2026-11-20 12:30:45",
    ],
)  # fmt: skip
def test_what_is_not_certain_is_not_reported(text):
    assert residual([text]) == {}


def test_only_counts_are_told_never_what_was_found():
    assert residual(["ana@example.com ben@example.org"]) == {"EMAIL_ADDRESS": 2}


def test_it_shares_no_code_with_the_recognisers():
    import ast
    import inspect

    from ragbench_dagster.traffic.scrubbing import residual as function

    module = inspect.getmodule(function)
    assert module is not None
    tree = ast.parse(inspect.getsource(module))
    imported = {n.module or "" for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert not any(name.startswith("ragbench_dagster") for name in imported)
