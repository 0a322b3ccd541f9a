"""With `--import-mode=importlib` a test's folder is not on the path: the helpers here and the bench's rows are."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))
