"""Were a system's figures made under the night's own conditions?

`ragbench run --system S` makes one branch again; the other systems' tables may then come from an older release,
judge or template. Such rows are never ranked or judged together with tonight's.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ragbench_dagster.evaluation.identity import verdict_key
from ragbench_dagster.evaluation.night_items import NightItems
from ragbench_dagster.reporting.night import Night, Scores


def other_conditions(night: Night, scores: Scores) -> str | None:
    """Why these scores were not made under the night's conditions; None where they were."""
    path = night.ws.night(night.day, scores.system) / "responses.parquet"
    if not path.exists():
        return "its answers are gone: run the system again"
    release = (pq.read_schema(path).metadata or {}).get(b"release", b"").decode()
    if release and release != night.manifest["release"]:
        return f"answered for release {release}: run the system again"
    identity = night.identity(scores.metric)
    if identity is None:
        return None
    rows = np.flatnonzero(scores.scored & (scores.keys != None))  # noqa: E711 - elementwise on an object array
    if len(rows) == 0:
        return None
    example, key = scores.ids[rows[0]], scores.keys[rows[0]]
    answers = night.responses(scores.system)
    own = answers.filter(pc.equal(answers["example_id"], example))
    about = night.examples.filter(pc.equal(night.examples["example_id"], example))
    items = list(NightItems(own, SimpleNamespace(examples=about))())
    if items and verdict_key(identity, items[0]) != key:
        return "judged by another judge, template or on other answers: run the system again"
    return None
