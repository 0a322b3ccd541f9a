"""The fixture `maker`, and helpers beside the tests imported by name."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from night_maker import NightMaker


@pytest.fixture
def maker(tmp_path):
    """`maker("thresholds: {...}", n=300)` -> a NightMaker in an empty folder."""
    made = []

    def make(settings: str = "", n: int = 300, **more) -> NightMaker:
        root = tmp_path / f"ws{len(made)}"
        root.mkdir()
        made.append(root)
        return NightMaker(root, settings, n, **more)

    return make
