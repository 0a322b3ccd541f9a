"""A finished night to track, with odd names and a metric without a value."""

from ragbench_dagster.store import Workspace
from tests.support.hostile_texts import CATEGORIES
from tests.support.pages import finish

ODD = "judge.v2[x] & co"
SETTINGS = f"""
systems: {{logged: {{kind: logged}}}}
metrics: [faithfulness, "{ODD}", "hit_rate@5", "ndcg@10"]
judge: {{evaluators: {{"{ODD}": "tests:none"}}}}
tracking: {{TRACKING}}
"""


def tracked_night(maker, tracking: str, day: str = "2026-11-20", share: float = 0.8, **manifest) -> Workspace:
    """One night of one system: `share` of its answers pass, NDCG applies to nothing."""
    made = maker(SETTINGS.replace("{TRACKING}", "{" + tracking + "}"), n=100, categories=CATEGORIES)
    write_night(made, day, share, **manifest)
    return made.ws


def write_night(made, day: str, share: float, ndcg: float | None = None, **manifest) -> None:
    passing = [1.0 if i < 100 * share else 0.0 for i in range(100)]
    figures = {"faithfulness": passing, ODD: passing, "hit_rate@5": passing, "ndcg@10": [ndcg] * 100}
    templates = manifest.pop("templates", {"faithfulness": "hash-one"})
    made.night({"logged": figures}, day=day, templates=templates, code_version="0.1.0", **manifest)
    made.calibrated(["faithfulness"], day=day)
    finish(made.ws, day)
