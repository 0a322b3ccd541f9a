"""Tonight against a baseline: paired change by part, and its split into judge, system and dataset."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.cache_key import verdict_key
from ragbench_dagster.evaluation.items import NightItems
from ragbench_dagster.metrics import is_judged
from ragbench_dagster.reporting.baselines import Baseline, Baselines, Pairs
from ragbench_dagster.reporting.night_results import Mask, Night, Scores, nights_before
from ragbench_dagster.stats.change import BrokenLink, Chain, Sentinel, chain_linked, split_change
from ragbench_dagster.stats.clustering import ClusteredChange, clustered_change, join_clusters
from ragbench_dagster.store import Workspace, table_metadata


def change_in(pairs: Pairs, where: Mask | None = None) -> ClusteredChange | None:
    """The paired change over the shared examples in `where` (a mask over tonight's rows), by clusters."""
    at = np.arange(pairs.n) if where is None else np.flatnonzero(where[pairs.new])
    new = pairs.new[at]
    before, after = pairs.before.value[pairs.old[at]], pairs.after.value[new]
    return clustered_change(before, after, pairs.after.cluster[new], pairs.after.share and pairs.before.share)


def levels(pairs: Pairs, where: Mask | None = None) -> tuple[float | None, float | None]:
    """Means of both sides on the shared examples."""
    at = np.arange(pairs.n) if where is None else np.flatnonzero(where[pairs.new])
    if len(at) == 0:
        return None, None
    return float(pairs.before.value[pairs.old[at]].mean()), float(pairs.after.value[pairs.new[at]].mean())


def change_dict(
    change: ClusteredChange | Chain | None, baseline: Baseline, differs: str | None
) -> dict[str, Any] | None:
    """A change for the summary, on the judge's own scale; None without shared examples."""
    if change is None:
        return None
    found = {
        "baseline": baseline.name,
        "value": change.value,
        "low": change.interval[0] if change.interval else None,
        "high": change.interval[1] if change.interval else None,
        "not_comparable": differs,
        "clusters": change.clusters,
    }
    if isinstance(change, Chain):
        return {**found, "n": change.questions, "gains": None, "losses": None, "releases": change.releases}
    return {**found, "n": change.n, "gains": change.gains, "losses": change.losses, "releases": 0}


def split_of(night: Night, baseline: Baseline, pairs: Pairs) -> dict[str, Any] | None:
    """The change of the overall mean since the baseline as judge + system + dataset + unscored, with intervals.

    Dataset: questions that only one of the two releases holds, or whose labels changed. Unscored: those of both
    that were scored on one night alone. None for another system of the same night, or without shared examples.
    """
    if baseline.night is night or pairs.n < 2:
        return None
    metric = pairs.after.metric
    after, before = pairs.after, pairs.before
    sentinel = None
    if is_judged(metric):
        sentinel = sentinel_pair(baseline.night, night, metric)
        if sentinel is None:
            return None
    # a verdict served from the ledger is the very verdict of the other night: it carries no drift
    fresh = float((after.keys[pairs.new] != before.keys[pairs.old]).mean())
    kept_old, kept_new = _comparable(before, after, pairs.old), _comparable(after, before, pairs.new)
    found = split_change(
        before.value[kept_old], after.value[kept_new],
        np.searchsorted(np.flatnonzero(kept_old), pairs.old),
        np.searchsorted(np.flatnonzero(kept_new), pairs.new),
        sentinel, fresh,
    )  # fmt: skip
    total = float(after.value[after.counted].mean() - before.value[before.counted].mean())
    unscored = {"value": total - found.total, "low": None, "high": None}
    return {"baseline": baseline.name, **found.as_dict(), "total": total, "unscored": unscored}


def _comparable(own: Scores, other: Scores, shared: Any) -> Mask:
    """Counted rows that are shared, or of questions that the other night's table does not hold as scorable."""
    paired = np.zeros(len(own.ids), dtype=bool)
    paired[shared] = True
    lost = np.array(
        [(row := other.place.get(name)) is not None and not other.counted[row] for name in own.ids.tolist()]
    )
    return own.counted & (paired | ~lost)


def sentinel_pair(before: Night, after: Night, metric: str) -> Sentinel | None:
    """Both nights' verdicts on the sentinel rows that both judged; None where there are none."""
    then = before.judge_of(metric).get("sentinel") or {}
    now = after.judge_of(metric).get("sentinel") or {}
    rows = [
        (now["human"][key], then["verdicts"][key], verdict)
        for key, verdict in sorted((now.get("verdicts") or {}).items())
        if verdict is not None and (then.get("verdicts") or {}).get(key) is not None
    ]
    if not rows:
        return None
    human, old, new = np.array(rows, dtype=float).T
    return Sentinel(human, old, new)


def baseline_for(baselines: Baselines, system: str, metric: str) -> Baseline | None:
    """The baseline shown in the summary: the threshold's own, else the last passed night, else the
    one before."""
    threshold = baselines.night.ws.settings.thresholds.get(metric)
    wanted = threshold.baseline if threshold else "accepted"
    found, _ = baselines.find(system, wanted)
    return found or baselines.last_passed(system) or baselines.night_before(system)


def night_compared(ws: Workspace, day: str, system: str, metric: str) -> str:
    """The night that the gate compares `system` with on `metric`, of tonight's own release.

    Raises:
        UserError: there is none; names what to do.
    """
    night = Night.open(ws, day)
    found = baseline_for(Baselines(night), system, metric)
    if found is None or found.night is night:
        raise UserError(f"{day}: no earlier night to compare {system} with; name one: --since NIGHT")
    if found.night.manifest.release != night.manifest.release:
        raise UserError(
            f"{found.name} has another release than {day}: labels on changed pairs count within one release; "
            f"name a night of this one: --since NIGHT, or accept one"
        )
    return found.night.day


# Were a system's figures made under the night's own conditions?
#
# `ragbench run --system S` makes one branch again; the other systems' tables may then come from an older release,
# judge or template. Such rows are never ranked or judged together with tonight's.


def other_conditions(night: Night) -> dict[tuple[str, str], str]:
    """(system, metric) -> why its scores were not made under the night's conditions; those that were are left out."""
    found: dict[tuple[str, str], str] = {}
    for system in sorted({system for system, _ in night.scores}):
        own = {metric: scores for (name, metric), scores in night.scores.items() if name == system}
        why = _answers(night, system)
        stale = dict.fromkeys(own, why) if why else _judged(night, system, own)
        found |= {(system, metric): reason for metric, reason in stale.items()}
    return found


def _answers(night: Night, system: str) -> str | None:
    path = night.ws.night(night.day, system) / "responses.parquet"
    if not path.exists():
        return "its answers are gone: run the system again"
    release = table_metadata(path).get(b"release", b"").decode()
    if release and release != night.manifest.release:
        return f"answered for release {release}: run the system again"
    return None


def _judged(night: Night, system: str, own: dict[str, Scores]) -> dict[str, str]:
    """One verdict of each metric is enough: a table of verdicts is always written whole."""
    wanted: dict[str, tuple[str, str]] = {}
    for metric, scores in own.items():
        rows = np.flatnonzero(scores.scored & np.array([key is not None for key in scores.keys]))
        if night.identity(metric) is not None and len(rows):
            wanted[metric] = scores.ids[rows[0]], scores.keys[rows[0]]
    if not wanted:
        return {}
    examples = pa.array(sorted({example for example, _ in wanted.values()}))
    answers = night.responses(system)
    kept = answers.filter(pc.is_in(answers["example_id"], examples))
    about = night.examples.filter(pc.is_in(night.examples["example_id"], examples))
    items = {item.example_id: item for item in NightItems(kept, SimpleNamespace(examples=about))()}
    return {
        metric: "judged by another judge, template or on other answers: run the system again"
        for metric, (example, key) in wanted.items()
        if example in items and verdict_key(night.identity(metric) or "", items[example]) != key
    }


# The accepted night followed over the releases since then: which nights are the anchors of the chain.
#
# The first full night of each later release is that release's anchor; tonight is one where no earlier night had
# its release. The formula belongs to `calibration.stats.chain`.

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
    return baseline.accepted is not None and baseline.night.manifest.release != baselines.night.manifest.release


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
    tonight, release = baselines.night, baseline.night.manifest.release
    found: list[Night] = []
    days = [d for d in nights_before(baselines.full, baselines.before) if d > baseline.accepted.night]
    for day in reversed(days):
        night = baselines.opened(day)
        if night is None or baseline.system not in night.systems or night.manifest.release == release:
            continue
        found.append(night)
        release = night.manifest.release
    if release != tonight.manifest.release:
        found.append(tonight)
    return found
