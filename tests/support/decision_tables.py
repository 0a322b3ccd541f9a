"""The independent implementation of the decisions, loaded from the shared folder, and random tables for it."""

import importlib.util
import os
from pathlib import Path
from types import ModuleType

import numpy as np
from hypothesis import strategies as st


def reference() -> ModuleType | None:
    """tools/decision_reference.py; None where it cannot be had."""
    named = os.environ.get("RAGBENCH_SHARED")
    root = Path(named) if named else Path(__file__).resolve().parents[3] / "shared"
    path = root / "tools" / "decision_reference.py"
    if not path.is_file():
        return None
    spec = importlib.util.spec_from_file_location("decision_reference", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def column(*values: float) -> np.ndarray:
    return np.array(values, dtype=float)


@st.composite
def requests(draw):
    """Questions with sampled requests c and weights w >= c."""
    n = draw(st.integers(2, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    c = rng.integers(1, 30, n).astype(float)
    return c * rng.choice([1.0, 2.5, 10.0], n), c, rng


@st.composite
def clustered(draw):
    """0/1 values with cluster numbers without gaps, at least one cluster of two, and at least three clusters."""
    k = draw(st.integers(3, 15))
    sizes = draw(st.lists(st.integers(1, 8), min_size=k, max_size=k))
    sizes[0] = max(sizes[0], 2)
    clusters = np.repeat(np.arange(k), sizes)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return rng.permutation(clusters), rng
