"""Which requests of a day are kept: bottom-k by a salted hash of the request id (design 6).

A request's rank depends on its id and the salt alone, so the same logs give the same sample on every machine,
and a higher rate only adds rows. Each kept request stands for `n / kept` requests of its stratum
(Horvitz-Thompson weights: Horvitz & Thompson 1952; bottom-k samples: Cohen & Kaplan 2007).
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Sequence
from fractions import Fraction

from ragbench_dagster.settings import Sample


def rank(salt: str, request_id: str) -> int:
    """Where a request stands in the order of selection (64 bits); kept in memory, never stored."""
    hashed = hashlib.sha256(f"{salt}\0{request_id}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(hashed[:8], "big")


def kept_of(n: int, rate: float, least: int) -> int:
    """How many of `n` requests are kept: `ceil(rate x n)`, or `least`, whichever is more, `n` at most.

    The rate is read as the decimal it was written as: 0.07 of 100 are 7, though 0.07 * 100 > 7 in floats.
    """
    share = Fraction(repr(rate)) * n
    return min(n, max(-(-share.numerator // share.denominator), least))


def choose(ranks: Sequence[int], strata: Sequence[Hashable], sample: Sample) -> dict[int, float]:
    """Positions of the kept requests of one day, with their weights.

    Each category is a stratum of its own, and at least `min_per_category` of it are kept. With
    `min_per_category: 0` no category is promised a request, and the day is one stratum: keeping
    `ceil(rate x n)` of each of many small categories would promise one of each, several times the rate.

    Args:
        ranks: of each request.
        strata: category of each request.
        sample: rate and floor.
    """
    groups: dict[Hashable, list[int]] = {}
    for at, stratum in enumerate(strata):
        groups.setdefault(stratum if sample.min_per_category else None, []).append(at)
    found: dict[int, float] = {}
    for group in groups.values():
        kept = kept_of(len(group), sample.rate, sample.min_per_category)
        for at in sorted(group, key=lambda at: ranks[at])[:kept]:
            found[at] = len(group) / kept
    return found
