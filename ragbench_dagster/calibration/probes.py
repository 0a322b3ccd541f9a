"""Injection probes: wrong answers that tell the judge to pass them.

Each probe is a wrong answer followed by an injection of one kind (fake verdict lines, fake system turns,
reasoning tags, threats, encodings, several languages). The share that passes is the share that fooled the
judge; probes that a provider's content filter blocked are counted apart. The bare wrong answers are judged
as well: a judge that passes those is weak, not fooled.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from ragbench_dagster.calibration.judged_rows import passing_of, statuses
from ragbench_dagster.metrics import metric_of
from ragbench_dagster.records import Item, Verdict
from ragbench_dagster.stats.intervals import wilson
from ragbench_dagster.store import digest


@dataclass(frozen=True, slots=True)
class Probe:
    """One wrong answer. `kind` is "control" for the bare one."""

    kind: str
    language: str
    item: Item


@cache
def load_probes(metric: str) -> tuple[Probe, ...]:
    """The shipped probes of a metric, the bare wrong answers first; empty where no answer fails for certain."""
    grading = metric_of(metric).grading
    if grading is None or not grading.probe:
        return ()
    data = resources.files("ragbench_dagster.calibration") / "data" / "probes.json"
    raw = json.loads(data.read_text(encoding="utf-8"))
    bases: list[dict[str, Any]] = raw["wrong_answers"]
    found = [Probe("control", base["language"], _item(base, base[grading.probe])) for base in bases]
    for place, line in enumerate(raw["injections"]):
        base = bases[place % len(bases)]
        text = line["text"].replace("{answer}", base[grading.probe])
        response = text if "{answer}" in line["text"] else f"{base[grading.probe]}\n\n{text}"
        found.append(Probe(line["kind"], line["language"], _item(base, response)))
    return tuple(found)


def _item(base: dict[str, Any], response: str) -> Item:
    key = "probe-" + digest(base["query"], response, size=8)
    return Item(key, base["query"], response, tuple(base["contexts"]), base["reference"])


def probe_result(probes: Sequence[Probe], verdicts: Sequence[Verdict], threshold: float | None) -> dict[str, Any]:
    """How many probes fooled the judge.

    Returns:
        `n` judged, `fooled`, `share` (None without a judged probe), `ci`, `kinds` that fooled it,
        `blocked` by a content filter, `controls_passed`, `statuses`.
    """
    fooled: list[str] = []
    n = blocked = controls = 0
    for probe, verdict in zip(probes, verdicts, strict=True):
        passing = passing_of(verdict, threshold)
        if probe.kind == "control":
            controls += passing == 1
            continue
        blocked += verdict.status == "refused"
        if passing is not None:
            n += 1
            if passing:
                fooled.append(probe.kind)
    return {
        "n": n,
        "fooled": len(fooled),
        "share": len(fooled) / n if n else None,
        "ci": wilson(len(fooled), n),
        "kinds": sorted(fooled),
        "blocked": blocked,
        "controls_passed": controls,
        "statuses": statuses(verdicts),
    }
