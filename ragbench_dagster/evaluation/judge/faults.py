"""What can go wrong between us and a provider."""

from __future__ import annotations

from ragbench_dagster.errors import UserError


class JudgeUnavailable(UserError):
    """No call can be made here: the key's variable is not set. What the ledger holds is still there."""
