"""Questions, answers and names that attack the page which shows them. Nothing here is real traffic."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ragbench_dagster.records import RESPONSES
from ragbench_dagster.store import Workspace, read_table, rows_table, write_table
from tests.support.pages import NightMaker

DAYS = ["2026-11-18", "2026-11-19", "2026-11-20"]
METRIC, SYSTEM = "judge.v2[x]", "gpt-4.1"
CATEGORIES = ["a.[b]: c", "plans: EU", "v1.2", "<b>R&D</b>\u202etxt"]
HUGE = "needle " + "0123456789 <i>&amp;</i> " * 5_000  # over 100 kB
TEXTS = [
    "<script>window.pwned = 1</script>",
    '"><img src=x onerror="window.pwned = 2">',
    "<svg onload=window.pwned=3><a href='javascript:window.pwned=4'>click</a></svg>",
    "[click me](javascript:window.pwned=5) ![x](https://attacker.example/pixel.png)",
    "</style></script><script src=https://attacker.example/x.js></script>",
    "file\u202egnp.exe is \u2066isolated\u2069 \u200f",
    "nul\x00 bell\x07 escape\x1b[31m delete\x7f next\x85 line\u2028sep",
    "{{ 7 * 7 }} {% raw %} ${7*7} <!-- ]]> &lt; &#x3c;",
    "::error::pretend\n##[group]x",
    HUGE,
    "x" * 3_000,
    "<details open ontoggle=window.pwned=6><style>*{display:none}</style>",
]
SETTINGS = f"""
systems:
  logged: {{kind: logged}}
metrics: [faithfulness, "{METRIC}", "hit_rate@5", "mrr@10"]
judge: {{evaluators: {{"{METRIC}": "tests:none"}}}}
thresholds:
  "hit_rate@5": {{min: 0.9, slices: {{"<b>R&D</b>\\u202etxt": 0.95}}}}
gate: {{systems: [{SYSTEM}]}}
"""


@dataclass(frozen=True)
class Hostile:
    """The workspace, its last night and that night's page."""

    ws: Workspace
    day: str
    page: Path
    maker: NightMaker


def hostile_nights(root: Path, finish: Any) -> Hostile:
    """Three nights of two systems; the last one fails its floor."""
    maker = NightMaker(root, SETTINGS.replace("\\u202e", "\u202e"), n=len(TEXTS) * 20, categories=CATEGORIES)
    n = len(maker.ids)
    texts = [TEXTS[i % len(TEXTS)] + f" #{i}" for i in range(n)]
    maker.weights[: len(TEXTS)] = 50.0  # one of each is among the worst
    maker.release = maker.make_release(
        day="2026-11-17",
        query=texts,
        history=[[TEXTS[(i + 1) % len(TEXTS)][:2_000]] for i in range(n)],
        expected_doc_ids=[[f"d<i>{i}</i>"] for i in range(n)],
        expected_answer=[TEXTS[(i + 2) % len(TEXTS)] for i in range(n)],
        weight=[float(w) for w in maker.weights],
    )
    page = root
    for place, day in enumerate(DAYS):
        low = [0.0 if i < len(TEXTS) * (5 + 5 * place) else 1.0 for i in range(n)]
        judged: list[Any] = ["error" if i % 31 == 30 else v for i, v in enumerate(low)]
        half = [0.5 if v == 0.0 else 1.0 for v in low]
        figures = {"faithfulness": judged, METRIC: judged, "hit_rate@5": low, "mrr@10": half}
        maker.night({SYSTEM: figures, "logged": figures}, day=day, keys=day, warnings=[TEXTS[0], TEXTS[5]])
        maker.calibrated(["faithfulness", METRIC], day=day)
        for system in (SYSTEM, "logged"):
            _attack(maker, day, system)
        page = finish(maker.ws, day)
    return Hostile(maker.ws, DAYS[-1], page, maker)


def _attack(maker: NightMaker, day: str, system: str) -> None:
    """Answers, contexts, ids and feedback with the same texts."""
    n = len(maker.ids)
    answers = [
        {
            "example_id": maker.ids[i],
            "status": "scored",
            "response": TEXTS[(i + 3) % len(TEXTS)],
            "contexts": [TEXTS[(i + 4) % len(TEXTS)], TEXTS[(i + 5) % len(TEXTS)]],
            "retrieved_ids": [f"d<i>{i}</i>", None, TEXTS[1]],
            "retrieved_scores": [1.0, 0.5, 0.1],
            "answer_hash": f"h{i}",
        }
        for i in range(n)
    ]
    write_table(maker.ws.night(day, system) / "responses.parquet", rows_table(answers, RESPONSES))
    path = maker.ws.night(day) / "scores.parquet"
    table = read_table(path)
    feedback = [TEXTS[i % len(TEXTS)] for i in range(table.num_rows)]
    column = table.schema.get_field_index("feedback")
    write_table(path, table.set_column(column, "feedback", pa.array(feedback, pa.string())))
