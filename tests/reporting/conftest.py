"""The fixture `maker`, and helpers beside the tests imported by name."""

import pytest

from tests.support.night_maker import maker_in


@pytest.fixture
def maker(tmp_path):
    """`maker("thresholds: {...}", n=300)` -> a NightMaker in an empty folder."""
    return maker_in(tmp_path)
