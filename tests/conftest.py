"""Shared fixtures. Data for tests is read from RAGBENCH_SHARED, else `../shared` beside the repository."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A machine under load is slow; that is no property of the code. A test's own `settings` still count.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

# A suite that a shell starts in the background ignores signals, and hands that on to every process it starts.
for _number, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGTERM, signal.SIG_DFL)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _handler)


def shared_folder() -> Path | None:
    """The folder of test data, or None where it cannot be had."""
    named = os.environ.get("RAGBENCH_SHARED")
    path = Path(named) if named else Path(__file__).resolve().parents[2] / "shared"
    return path if (path / "data").is_dir() else None


@pytest.fixture(scope="session")
def shared() -> Path:
    path = shared_folder()
    if path is None:
        pytest.skip("no test data: set RAGBENCH_SHARED to the folder that holds data/ and cases/")
    return path
