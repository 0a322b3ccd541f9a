"""Members of registries that are named by `module:name`: a registry can stand below what it lists, and loads it late."""

from __future__ import annotations

import importlib
from typing import Any


def member(path: str) -> Any:
    """What stands at `module:name`, imported when it is first asked for."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)
