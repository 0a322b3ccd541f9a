"""Small nights for tests: a real release in a real store, with scores that the test chooses."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ragbench_dagster.dataset.release import write_release
from ragbench_dagster.evaluation.cache_key import verdict_key
from ragbench_dagster.records import EXAMPLES, FORMS, RESPONSES, SCORES, TIMINGS, Item
from ragbench_dagster.reporting.scores import build_scores
from ragbench_dagster.results import Manifest
from ragbench_dagster.settings import parse_settings
from ragbench_dagster.store import Workspace, rows_table, write_json, write_table

DAY = "2026-11-20"
FAILED = "failed"


def example_ids(n: int) -> list[str]:
    return [f"e{i:05d}" for i in range(n)]


class NightMaker:
    """A workspace whose nights are written by hand.

    Args:
        root: an empty folder.
        settings: text of ragbench.yaml.
        n: examples of the release.
    """

    def __init__(self, root: Path, settings: str = "", n: int = 300, categories: Sequence[str] = ("a", "b")) -> None:
        self.ws = Workspace(root, parse_settings(settings))
        self.ids = example_ids(n)
        self.categories = [categories[i % len(categories)] for i in range(n)]
        self.weights = np.ones(n)
        self.queries: dict[str, list[str]] = {}  # of each release
        self.release = self.make_release()

    def make_release(self, day: str = "2026-11-16", **columns: Any) -> str:
        """A release of the maker's examples; `columns` override whole columns."""
        n = len(self.ids)
        base: dict[str, Any] = {
            "example_id": self.ids,
            "query": [f"question {i}" for i in range(n)],
            "history": [[]] * n,
            "category": self.categories,
            "expected_doc_ids": [[f"d{i}"] for i in range(n)],
            "expected_grades": [None] * n,
            "expected_answer": [f"answer {i}" for i in range(n)],
            "label_level": ["document"] * n,
            "conflict": [False] * n,
            "synthetic": [False] * n,
            "count": [1] * n,
            "weight": [float(w) for w in self.weights],
            "first_day": [dt.date(2026, 9, 1)] * n,
            "last_day": [dt.date(2026, 11, 15)] * n,
            **columns,
        }
        rows = [dict(zip(base, values, strict=True)) for values in zip(*base.values(), strict=True)]
        forms = [{"form": row["query"], "example_id": row["example_id"]} for row in rows]
        release = write_release(self.ws, day, rows_table(rows, EXAMPLES), rows_table(forms, FORMS), {}).id
        self.queries[release] = base["query"]
        return release

    def night(
        self,
        scores: dict[str, dict[str, Any]],
        day: str = DAY,
        latency: float | Sequence[float | None] | None = 100.0,
        release: str | None = None,
        keys: str = "same",
        **manifest: Any,
    ) -> str:
        """Write one night.

        Args:
            scores: system -> metric -> values (numbers; None: not_applicable; text: that status; "failed": the
                system raised).
            latency: milliseconds of every answer, or one for each; None: no times.
            keys: identity hash of the judge that made the verdicts; the one of `calibrated` by default.
        """
        n = len(self.ids)
        for system, metrics in scores.items():
            folder = self.ws.night(day, system)
            lost = {i for values in metrics.values() for i, v in zip(self.ids, values, strict=True) if v == FAILED}
            answers = [
                {
                    "example_id": i,
                    "status": "error" if i in lost else "scored",
                    "response": f"response to {i}",
                    "contexts": ["context"],
                    "retrieved_ids": ["d0"],
                    "retrieved_scores": [1.0],
                    "answer_hash": f"h{i}",
                }
                for i in self.ids
            ]
            made_for = {"release": release or self.release}
            write_table(folder / "responses.parquet", rows_table(answers, RESPONSES), made_for)
            times = [latency] * n if latency is None or isinstance(latency, float | int) else list(latency)
            rows = [{"example_id": i, "latency_ms": t} for i, t in zip(self.ids, times, strict=True)]
            write_table(folder / "timings.parquet", rows_table(rows, TIMINGS))
            for name, judged in (("retrieval", False), ("verdicts", True)):
                own = {m: v for m, v in metrics.items() if ("@" not in m) == judged}
                table = rows_table(self._rows(system, own, keys, release or self.release), SCORES)
                write_table(folder / f"{name}.parquet", table)
        facts: dict[str, Any] = {
            "day": day,
            "release": release or self.release,
            "examples": n,
            "systems": dict.fromkeys(sorted(scores), "v1"),
            "judge_label": "fake",
            "metrics": self.ws.settings.metrics,
        }
        self.ws.write_result(day, Manifest(**facts | manifest))
        build_scores(self.ws, day, sorted(scores))
        return day

    def _rows(self, system: str, metrics: dict[str, Any], judge: str, release: str) -> list[dict[str, Any]]:
        rows = []
        queries = self.queries[release]
        for metric, values in sorted(metrics.items()):
            judged = "@" not in metric
            for place, value in enumerate(np.asarray(values, dtype=object).tolist()):
                status = "scored" if isinstance(value, int | float) else (value or "not_applicable")
                number = float(value) if status == "scored" else 0.0 if status == FAILED else None
                rows.append(
                    {
                        "system": system,
                        "metric": metric,
                        "example_id": self.ids[place],
                        "status": status,
                        "score": number,
                        "passing": None if number is None or not judged else number >= 0.5,
                        "value": number,
                        "weight": float(self.weights[place]),
                        "category": self.categories[place],
                        "in_gate": True,
                        "feedback": f"feedback on {place}" if judged else None,
                        "key": self._key(judge, queries[place], place) if judged else None,
                    }
                )
        return rows

    def _key(self, judge: str, query: str, place: int) -> str:
        name = self.ids[place]
        return verdict_key(judge, Item(name, query, f"response to {name}", ("context",), f"answer {place}"))

    def calibrated(self, metrics: Sequence[str], day: str = DAY, **change: Any) -> None:
        """A calibration.json in which the judge of `metrics` may be trusted; `change` overrides its fields."""
        write_json(
            self.ws.night(day) / "calibration.json",
            {"day": day, "rows": 200, "reference": None, "metrics": {m: {**trusted(), **change} for m in metrics}},
        )


def trusted() -> dict[str, Any]:
    """What calibration says of a good judge."""
    return {
        "identity": {"judge": "fake judge", "evaluator": "e", "version": "1", "template_hash": "t", "hash": "same"},
        "pinned": True,
        "key_missing": False,
        "n": 400,
        "table": {"tp": 195, "fp": 5, "fn": 5, "tn": 195},
        "accuracy": 0.975,
        "balanced_accuracy": 0.975,
        "sensitivity": 0.975,
        "specificity": 0.975,
        "kappa": 0.95,
        "reason": None,
        "ci": {},
        "sentinel": {"size": 0, "verdicts": {}, "human": {}, "coverage": None},
        "drift": {"state": "not set up"},
        "probes": None,
        "threshold": None,
        "usable": True,
        "closed": [],
    }


def maker_in(folder: Path):
    """`maker("thresholds: {...}", n=300)` -> a NightMaker in an empty folder below `folder`."""
    made = []

    def make(settings: str = "", n: int = 300, **more) -> NightMaker:
        root = folder / f"ws{len(made)}"
        root.mkdir()
        made.append(root)
        return NightMaker(root, settings, n, **more)

    return make
