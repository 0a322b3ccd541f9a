"""How often a night fails by chance, over one night and over a month of them.

Several nights of an unchanged but noisy system are several chances to fail: at .05 a night .37 to .48 of months
had a FAIL in simulations. Tested at .05/30 a night (Bonferroni; Dunn 1961, JASA 56:52), which needs no
independence of the nights, .00 to .06 had; the price is that a loss is found later.
"""

from __future__ import annotations

from typing import Literal

FalseFails = Literal["night", "month"]
LEVEL = 0.05
NIGHTS = 30


def fail_level(false_fails: FalseFails) -> float:
    """Level of the night's fail tests, over all of them together, for at most 5 % false fails a night or month."""
    return LEVEL / NIGHTS if false_fails == "month" else LEVEL
