"""What keeps the gate from passing, read from the store again: an upstream check may never have run."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ragbench_dagster.calibration.calibrate import WARNING, closed_by
from ragbench_dagster.errors import UserError
from ragbench_dagster.records import COUNTED
from ragbench_dagster.reporting.baselines import gate_systems
from ragbench_dagster.reporting.comparability import other_conditions
from ragbench_dagster.reporting.estimates import coverage
from ragbench_dagster.reporting.gate.production import production
from ragbench_dagster.reporting.gate.tests import Closed
from ragbench_dagster.reporting.night_results import Night, Scores
from ragbench_dagster.results import ClosedGuard
from ragbench_dagster.stats.drift import BUNCHED, errors_bunched
from ragbench_dagster.store import read_json
from ragbench_dagster.text.format import percent, percent_below
from ragbench_dagster.traffic.scan import left_over
from ragbench_dagster.traffic.timestamps import last_days

# Was it the system's version or the night's hours? How its calls went, and whether its errors stand together in time.
#
# A version that fails at some questions fails at them whenever they are asked, in an order (by hash) that is chance:
# its errors are scattered, and asking again mends nothing. An outage fails calls in a row. It is a failure for users,
# but says nothing about the version: the night is to be run again.

MISSING = 0.02  # share of questions still without an answer up to which an outage decides nothing


@dataclass(frozen=True)
class Outage:
    """How the calls of a system went.

    Attributes:
        asked: questions.
        first_pass: share of them answered in the first pass.
        mended: questions that failed in it and were answered when asked again.
        missing: questions without an answer at the end.
        bunched_p: chance that as many errors of the first pass stand together as closely, were they scattered.
        outage: more than 2 % are missing, and the errors are bunched (p <= .001).
    """

    asked: int
    first_pass: float | None
    mended: int
    missing: int
    bunched_p: float
    outage: bool

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def line(self) -> str:
        """In words; "" where every question was answered at once."""
        failed = self.mended + self.missing
        if not failed:
            return ""
        said = f"{failed:,} of {self.asked:,} questions failed when first asked"
        said += f"; {self.mended:,} were answered when asked again, {self.missing:,} were not"
        if self.outage:
            said += (
                ". The errors stand together in time, which looks like an outage of the system or of the network: "
                "run the night again"
            )
        return said


def outage_of(night: Night, system: str) -> Outage | None:
    """How the calls of `system` went that night; None for looked-up answers and nights of before it was noted."""
    found = read_json(night.ws.night(night.day, system) / "attempts.json")
    if found is None:
        return None
    errors = [bool(place % 2) for place, length in enumerate(found["order"]) for _ in range(length)]
    p = errors_bunched(errors).p
    missing = found["missing"] / found["asked"] if found["asked"] else 0.0
    return Outage(
        found["asked"], found["answered_first"], found["mended"], found["missing"], p,
        missing > MISSING and p <= BUNCHED,
    )  # fmt: skip


def answer_rows(systems: dict[str, Any]) -> list[list[Any]]:
    """Rows of a table: system, answered at first, mended, missing, bunched; of systems at which a question failed."""
    rows = []
    for name, system in systems.items():
        found = system.get("attempts")
        if found and found["mended"] + found["missing"]:
            bunched = (
                "an outage, as it looks" if found["outage"] else "together" if found["bunched_p"] <= BUNCHED else ""
            )
            rows.append([name, percent(found["first_pass"]), found["mended"], found["missing"], bunched or "scattered"])
    return rows


# What keeps the gate from passing, read from the store again: an upstream check may never have run.

# a judge that floats, drifts, disagrees or has no key closes the gate even where no threshold names its metric
NEVER_PASS = ("floating", "drifted", WARNING, "disagrees", "key")


def guards(night: Night) -> list[Closed]:
    """All closed guards of the night, the gravest first."""
    judges = _judges(night)
    # without a key nothing is scored: one reason is enough
    keyless = {c.metric for c in judges if c.kind == "key"}
    coverage_closed = [c for c in _coverage(night) if c.metric not in keyless]
    broken = _release(night)
    stale = [] if broken else _conditions(night)
    return [
        *broken,
        *_privacy(night),
        *_systems(night),
        *_outages(night),
        *_examples(night),
        *judges,
        *stale,
        *coverage_closed,
    ]


def _release(night: Night) -> list[Closed]:
    try:
        night.examples  # noqa: B018 - loading verifies the hash
    except UserError as fault:
        return [Closed(f"the release cannot be trusted: {fault}", "release")]
    return []


def _privacy(night: Night) -> list[Closed]:
    """Personal data left in a day of the window, or scrubbing below its floor: blocking checks."""
    found = []
    for day in reversed(last_days(night.day, night.ws.settings.dataset.reach_days)):
        left = left_over(night.ws, day)
        if left is None:
            found.append(f"{day}: not searched")
        elif left:
            found.append(f"{day}: {sum(left.values())}")
    closed = [Closed("personal data is left after scrubbing: " + ", ".join(found[:5]), "privacy")] if found else []
    below = (read_json(night.folder / "scrub_quality.json") or {}).get("below_floor") or []
    if below:
        closed.append(Closed("scrubbing is below its floor: " + "; ".join(map(str, below[:5])), "privacy"))
    return closed


def _systems(night: Night) -> list[Closed]:
    missing = [name for name in gate_systems(night) if name not in night.systems]
    return [Closed("no answers tonight: run it, or take it out of gate.systems", "missing", name) for name in missing]


def _outages(night: Night) -> list[Closed]:
    """An outage is a failure for users, and no fact about the version: nothing of the system is decided."""
    found = [(name, outage_of(night, name)) for name in gate_systems(night) if name in night.systems]
    return [Closed(facts.line, "outage", name) for name, facts in found if facts is not None and facts.outage]


def _examples(night: Night) -> list[Closed]:
    least, n = night.ws.settings.min_examples, examples_of(night)
    if n >= least:
        return []
    sampled = night.manifest.sample
    what = f"a sampled gate on {n} examples can only fail or be inconclusive" if sampled else f"only {n} examples"
    hint = "the full night decides" if sampled else "collect more days of logs, or lower dataset.min_examples"
    return [Closed(f"{what}, {least} are needed: {hint}", "examples", blocks_tests=False)]


def examples_of(night: Night) -> int:
    """Examples of the night that count for the gate."""
    return max((int(s.in_gate.sum()) for s in night.scores.values()), default=0)


def _judges(night: Night) -> list[Closed]:
    closed = []
    for metric in night.ws.settings.judged_metrics:
        found = night.judge_of(metric)
        if not found:
            closed.append(Closed("the judge was not calibrated tonight", "unchecked", metric=metric))
        # Those of the night, and those that stricter settings of now add; loosening takes a new `ragbench run`.
        reasons = {entry["kind"]: entry for entry in (closed_by(night.ws, found) if "sentinel" in found else [])}
        reasons |= {entry["kind"]: entry for entry in found.get("closed", [])}
        for entry in reasons.values():
            # a first alarm of the drift test bars PASS; what fails in spite of it has failed
            blocks = entry["kind"] != WARNING
            closed.append(Closed(entry["reason"], entry["kind"], metric=metric, blocks_tests=blocks))
    return closed


def _conditions(night: Night) -> list[Closed]:
    """Scores that an earlier run left, made under another release, judge or template."""
    return [Closed(why, "stale", system, metric) for (system, metric), why in other_conditions(night).items()]


def _coverage(night: Night) -> list[Closed]:
    closed = []
    logged = {name: production(night, name) for name in night.systems}
    for (system, metric), scores in night.scores.items():
        threshold = night.ws.settings.thresholds.get(metric)
        own = threshold.coverage if threshold else None
        least = night.ws.settings.gate.min_coverage if own is None else own
        requests = ((logged[system] or {}).get("metrics") or {}).get(metric)
        statuses: dict[str, int] = requests["statuses"] if requests else _counted(scores)
        share = coverage(statuses)
        if share is not None and share < least:
            lost = ", ".join(f"{n} {s}" for s, n in sorted(statuses.items()) if s not in (*COUNTED, "not_applicable"))
            reason = f"only {percent_below(share, least)} scored, {percent(least)} are needed ({lost})"
            closed.append(Closed(reason, "coverage", system, metric))
    return closed


def _counted(scores: Scores) -> dict[str, int]:
    statuses: dict[str, int] = {}
    for status in scores.status[scores.in_gate].tolist():
        statuses[status] = statuses.get(status, 0) + 1
    return statuses


def as_rows(closed: list[Closed]) -> list[ClosedGuard]:
    """The guards as gate.json has them."""
    return [ClosedGuard(c.line, c.kind, c.system, c.metric) for c in closed]


def lines(closed: list[Closed]) -> list[str]:
    """The reasons, one line each; metrics that share a reason stand in one line."""
    found: dict[tuple[str | None, str], list[str]] = {}
    for guard in closed:
        found.setdefault((guard.system, guard.reason), []).append(guard.metric or "")
    return [
        Closed(reason, "", system, ", ".join(filter(None, metrics)) or None).line
        for (system, reason), metrics in found.items()
    ]
