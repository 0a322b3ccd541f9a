"""The fixture `maker`, and helpers beside the tests imported by name."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from night_maker import maker_in


@pytest.fixture
def maker(tmp_path):
    """`maker("thresholds: {...}", n=300)` -> a NightMaker in an empty folder."""
    return maker_in(tmp_path)
