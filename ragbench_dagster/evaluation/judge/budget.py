"""What calls cost, and the cap of a run. An unknown price is an error, never zero."""

from __future__ import annotations

from dataclasses import dataclass

from ragbench_dagster.errors import UserError
from ragbench_dagster.settings import Judge, Price


@dataclass(slots=True)
class Budget:
    """USD spent and promised by the calls of one run, over all metrics and systems.

    `limit` None: no cap.
    """

    limit: float | None = None
    spent: float = 0.0
    promised: float = 0.0

    def allows(self, usd: float) -> bool:
        """True where a call of `usd` stays below the cap, what is in flight counted as estimated."""
        return self.limit is None or self.spent + self.promised + usd <= self.limit + 1e-12

    def promise(self, usd: float) -> None:
        """A call of about `usd` is made now."""
        self.promised += usd

    def settle(self, reserved: float, actual: float) -> None:
        """A call ended: its promise is replaced by what it cost (0 where it was not answered)."""
        self.promised -= reserved
        self.spent += actual


def price_of(judge: Judge) -> Price:
    """The judge's price.

    Raises:
        UserError: it is not set.
    """
    if judge.price is None:
        raise UserError(
            f"judge.price: not set for {judge.model}; give {{input: USD, output: USD}} per million tokens, "
            "0 where it is free"
        )
    return judge.price


def cost(price: Price, prompt_tokens: float, completion_tokens: float) -> float:
    """USD of one call."""
    return (prompt_tokens * price.input + completion_tokens * price.output) / 1e6


_budgets: dict[tuple[str, str], Budget] = {}


def run_budget(workspace: str, run: str, limit: float | None) -> Budget:
    """The budget that all systems of one `run` of a workspace share in this process."""
    budget = _budgets.setdefault((workspace, run), Budget())
    budget.limit = limit
    return budget
