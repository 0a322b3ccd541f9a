"""Makes the fixtures of `conftest_orchestration` known to this folder's tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from conftest_orchestration import make_workspace  # noqa: F401
