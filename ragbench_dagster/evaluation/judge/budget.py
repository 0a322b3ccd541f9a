"""What calls cost, and the cap of a run. An unknown price is an error, never zero."""

from __future__ import annotations

from collections.abc import Callable
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
    note: Callable[[float], None] | None = None  # told of USD that no verdict records: an engine's calls

    def allows(self, usd: float) -> bool:
        """True where a call of `usd` stays below the cap, what is in flight counted as estimated."""
        return self.limit is None or self.spent + self.promised + usd <= self.limit + 1e-12

    def promise(self, usd: float) -> None:
        """A call of about `usd` is made now."""
        self.promised += usd

    def settle(self, reserved: float, actual: float, recorded: bool = True) -> None:
        """A call ended: its promise is replaced by what it cost (0 where it was not answered).

        Args:
            reserved: what was promised, USD.
            actual: what it cost, USD.
            recorded: a verdict will say so in the ledger.
        """
        self.promised -= reserved
        self.spent += actual
        if actual and not recorded and self.note is not None:
            self.note(actual)


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


# Of this process; `spending` opens and closes them by the ledger.
_budgets: dict[tuple[str, str], Budget] = {}
_paying: dict[str, str] = {}  # workspace -> the run that pays for calls whose caller names none


def run_budget(workspace: str, run: str, limit: float | None) -> Budget:
    """The budget that everything of one `run` of a workspace shares in this process."""
    budget = _budgets.setdefault((workspace, run), Budget())
    budget.limit = limit
    return budget


def paying_budget(workspace: str, limit: float | None) -> Budget:
    """The budget of the run at hand; one of its own where no run is."""
    run = _paying.get(workspace)
    return Budget(limit) if run is None else run_budget(workspace, run, limit)
