"""`ragbench gate` after ragbench.yaml became stricter: the night's calibration is held to the new floor at once."""

import dataclasses

from ragbench_dagster.reporting.gate.guards import guards
from ragbench_dagster.reporting.night_results import Night


def test_a_higher_min_kappa_closes_the_gate_without_a_new_run(maker):
    made = maker("systems: {logged: {kind: logged}}\nmetrics: [faithfulness]\n", n=220)
    made.night({"logged": {"faithfulness": [1.0] * 220}})
    made.calibrated(["faithfulness"])
    night = Night.open(made.ws, "2026-11-20")
    kappa = night.judge_of("faithfulness")["kappa"]
    stricter = made.ws.settings.calibration.model_copy(update={"min_kappa": kappa + 0.01})
    settings = made.ws.settings.model_copy(update={"calibration": stricter})
    again = Night.open(dataclasses.replace(made.ws, settings=settings), "2026-11-20")
    assert [c.kind for c in guards(night) if c.metric == "faithfulness"] == []
    assert [c.kind for c in guards(again) if c.metric == "faithfulness"] == ["disagrees"]
