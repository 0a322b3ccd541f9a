"""The accepted night followed over the releases since then: which nights are the anchors of the chain.

The first full night of each later release is that release's anchor; tonight is one where no earlier night had
its release. The formula belongs to `calibration.stats.chain`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

from ragbench_dagster.calibration.stats.chain import BrokenLink, Chain, chain_linked
from ragbench_dagster.calibration.stats.clustering import join_clusters
from ragbench_dagster.reporting.baseline import Baseline, Baselines
from ragbench_dagster.reporting.night import Night, Scores, nights_before

ANEW = "accept a night anew: ragbench accept NIGHT --by NAME --why REASON"


@dataclass(frozen=True)
class Linked:
    """One system's scores on one metric: the accepted night's, each later anchor's, tonight's."""

    nights: list[Scores]  # the last one is tonight's
    unequal: frozenset[str]  # examples whose labels changed on the way: they measure different things

    def change(self, category: str | None = None) -> Chain | str:
        """The change since the accepted night, in one category or all, or why there is none."""
        tables = [self._values(scores, category) for scores in self.nights]
        found = chain_linked(tables[:-1], tables[-1], self._clusters)
        if isinstance(found, BrokenLink):
            return (
                f"two releases since then share only {found.shared} of its questions, {found.needed} are needed; {ANEW}"
            )
        return found

    def failed_part(self, category: str | None = None) -> float:
        """The part of the change that questions make at which the system failed on one of two linked nights."""
        tables = [self._values(scores, category) for scores in self.nights]
        failed = [set(scores.ids[scores.failed].tolist()) for scores in self.nights]
        total = 0.0
        for place in range(len(tables) - 1):
            old, new = tables[place], tables[place + 1]
            shared = old.keys() & new.keys()
            lost = shared & (failed[place] | failed[place + 1])
            total += sum(new[name] - old[name] for name in lost) / max(len(shared), 1)
        return total

    def _values(self, scores: Scores, category: str | None) -> dict[str, float]:
        at = scores.counted if category is None else scores.counted & (scores.category == category)
        pairs = zip(scores.ids[at].tolist(), scores.value[at].tolist(), strict=True)
        return {name: value for name, value in pairs if name not in self.unequal}

    @cached_property
    def _clusters(self) -> dict[str, Hashable]:
        """Example -> cluster over all releases of the chain: clusters that share an example are one."""
        keys: dict[str, list[Hashable]] = {}
        for place, scores in enumerate(self.nights):
            for name, cluster in zip(scores.ids.tolist(), scores.cluster.tolist(), strict=True):
                keys.setdefault(name, []).append((place, cluster))
        names = list(keys)
        joined = join_clusters([keys[name] for name in names]).tolist()
        return dict(zip(names, joined, strict=True))


def needs_links(baselines: Baselines, baseline: Baseline) -> bool:
    """True where tonight's release is not the accepted night's: the plain paired test does not reach."""
    return baseline.accepted is not None and baseline.night.manifest["release"] != baselines.night.manifest["release"]


def follow(baselines: Baselines, baseline: Baseline, scores: Scores) -> Linked | str:
    """The chain from the accepted night to tonight for one system and metric, or why it breaks."""
    assert baseline.accepted is not None
    nights = [baseline.night, *_anchors(baselines, baseline)]
    unequal: set[str] = set()
    tables: list[Scores] = []
    for before, after in zip(nights, [*nights[1:], baselines.night], strict=True):
        if why := baselines.differs(Baseline(f"night {before.day}", before, baseline.system), scores.metric):
            return f"{why}; {ANEW}"
        table = before.scores.get((baseline.system, scores.metric))
        if table is None:
            return f"night {before.day} has no {scores.metric} of {baseline.system}; {ANEW}"
        tables.append(table)
        unequal |= baselines.relabelled(before, after)
    return Linked([*tables, scores], frozenset(unequal))


def _anchors(baselines: Baselines, baseline: Baseline) -> list[Night]:
    """The first full night of each release after the accepted one, up to and including tonight's."""
    assert baseline.accepted is not None
    tonight, release = baselines.night, baseline.night.manifest["release"]
    found: list[Night] = []
    days = [d for d in nights_before(baselines.full, baselines.before) if d > baseline.accepted.night]
    for day in reversed(days):
        night = baselines.opened(day)
        if night is None or baseline.system not in night.systems or night.manifest["release"] == release:
            continue
        found.append(night)
        release = night.manifest["release"]
    if release != tonight.manifest["release"]:
        found.append(tonight)
    return found
