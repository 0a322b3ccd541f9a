"""calibration and reporting: judge_sentinel, judge_calibration; score_table -> summary -> leaderboard -> gate -> report."""

from __future__ import annotations

from typing import Any

import dagster as dg

from ragbench_dagster import records
from ragbench_dagster.orchestration.assets.bodies import markdown, metadata, night_asset
from ragbench_dagster.orchestration.resources import WorkspaceResource, reporter


def calibration_assets(days: dg.DailyPartitionsDefinition, systems: list[str]) -> list[dg.AssetsDefinition]:
    """The sentinel before the answers are judged, the rest after: one budget pays for all, in this order."""

    @night_asset(
        days,
        name="judge_sentinel",
        group="calibration",
        kinds={"llamaindex"},
        deps=[],
        description="A fixed sample of answers graded by people, judged afresh before anything else of the night.",
    )
    def judge_sentinel(context: dg.AssetExecutionContext, workspace: WorkspaceResource) -> Any:
        from ragbench_dagster.calibration import sentinel
        from ragbench_dagster.calibration.labelled_answers import read_calibration

        ws = workspace.open()
        found = sentinel.judge_sentinel(ws, context.partition_key, read_calibration(ws), reporter(context))
        verdicts = [v for _, some in found.values() for v in some]
        return dg.MaterializeResult(metadata=metadata(rows=len(verdicts), **sentinel.spent(verdicts)))

    @night_asset(
        days,
        name="judge_calibration",
        group="calibration",
        kinds={"json", "llamaindex"},
        deps=[judge_sentinel, *(dg.AssetKey([s, "verdicts"]) for s in systems)],
        description="The judge against people: agreement, kappa, drift and injection probes, each with its interval.",
    )
    def judge_calibration(context: dg.AssetExecutionContext, workspace: WorkspaceResource) -> Any:
        from ragbench_dagster.calibration.calibrate import agreement_rows, calibrate

        found = calibrate(workspace.open(), context.partition_key, reporter(context))
        rows = agreement_rows(found)
        return dg.MaterializeResult(
            metadata=metadata(
                calls=found.get("calls"),
                table=markdown(["metric", "n", "kappa", "balanced accuracy"], [r[:4] for r in rows]),
                **{f"kappa_{r[0]}": r[2] for r in rows},
            )
        )

    return [judge_sentinel, judge_calibration]


def reporting_assets(days: dg.DailyPartitionsDefinition, systems: list[str]) -> list[dg.AssetsDefinition]:
    branches = [dg.AssetKey([s, part]) for s in systems for part in ("retrieval_scores", "verdicts")]

    @night_asset(
        days,
        name="score_table",
        group="reporting",
        kinds={"parquet"},
        deps=[*branches, dg.AssetKey("judge_calibration"), dg.AssetKey("dedupe_quality")],
        schema=records.SCORE_TABLE,
        description="Every score of the night in long form: one row for each example, system and metric.",
    )
    def score_table(context: dg.AssetExecutionContext, workspace: WorkspaceResource) -> Any:
        from ragbench_dagster.evaluation import spending
        from ragbench_dagster.evaluation.pipeline import write_manifest
        from ragbench_dagster.reporting.pairwise import judge_pairs
        from ragbench_dagster.reporting.scores import build_scores

        ws, day = workspace.open(), context.partition_key
        manifest = write_manifest(ws, day)
        table = build_scores(ws, day, list(manifest.systems))
        pairs = judge_pairs(ws, day, reporter(context))
        spending.finish(ws, day)  # nothing of the night after this costs money
        return dg.MaterializeResult(
            metadata=metadata(
                **{"dagster/row_count": table.num_rows},
                pairs=pairs["pairs"],
                calls=pairs["calls"],
                cost_usd=pairs["cost_usd"],
            )
        )

    @night_asset(
        days,
        name="summary",
        group="reporting",
        kinds={"json", "pandas"},
        deps=[score_table],
        description="Scores with n, coverage and intervals: overall, by slice, against the baseline, over the last nights.",
    )
    def summary(context: dg.AssetExecutionContext, workspace: WorkspaceResource) -> Any:
        from ragbench_dagster.reporting.summary import summarise, summary_for_json

        ws, day = workspace.open(), context.partition_key
        summarise(ws, day)
        systems = summary_for_json(ws, day)["systems"]
        flat = [
            [s, m, v["value"], v["low"], v["high"], v["n"], v["coverage"]]
            for s, ms in systems.items()
            for m, v in ms.items()
            if isinstance(v, dict)
        ]
        plots = {f"{s}/{m}": v for s, m, v, *_ in flat}
        table = markdown(["system", "metric", "value", "low", "high", "n", "coverage"], flat)
        return dg.MaterializeResult(metadata=metadata(table=table, **plots))

    @night_asset(
        days,
        name="leaderboard",
        group="reporting",
        kinds={"json"},
        deps=[summary],
        description="Systems ranked per metric; those that cannot be told apart share a rank.",
    )
    def leaderboard(context: dg.AssetExecutionContext, workspace: WorkspaceResource) -> Any:
        from ragbench_dagster.reporting.leaderboard import rank

        found = rank(workspace.open(), context.partition_key)
        rows = [[r["metric"], r["rank"], r["system"], r["value"]] for r in found["rows"]]
        return dg.MaterializeResult(metadata=metadata(table=markdown(["metric", "rank", "system", "value"], rows)))

    @night_asset(
        days,
        name="gate",
        group="reporting",
        kinds={"json"},
        deps=[leaderboard],
        description="pass, fail or inconclusive by the thresholds of ragbench.yaml, with reasons. Facts are read from the "
        "store again: that an upstream check ran is never trusted.",
    )
    def gate(context: dg.AssetExecutionContext, workspace: WorkspaceResource) -> Any:
        from ragbench_dagster.reporting.alerts import alert_night
        from ragbench_dagster.reporting.gate.decide import decide

        ws, day = workspace.open(), context.partition_key
        result = decide(ws, day)
        if not ws.sample:
            alert_night(ws, day)
        reasons = markdown(["reason"], [[r] for r in result.reasons])
        return dg.MaterializeResult(metadata=metadata(verdict=result.verdict, reasons=reasons))

    @night_asset(
        days,
        name="report",
        group="reporting",
        kinds={"html"},
        deps=[gate],
        description="The night on one self-contained HTML page.",
    )
    def report(context: dg.AssetExecutionContext, workspace: WorkspaceResource) -> Any:
        from ragbench_dagster.reporting.report import write_report

        path = write_report(workspace.open(), context.partition_key)
        return dg.MaterializeResult(metadata={"report": dg.MetadataValue.path(str(path)), "bytes": path.stat().st_size})

    @night_asset(
        days,
        name="experiment_run",
        group="reporting",
        kinds={"mlflow"},
        deps=[gate],
        description="The night in the team's tracker (MLflow, Weights & Biases), where one is configured.",
    )
    def experiment_run(context: dg.AssetExecutionContext, workspace: WorkspaceResource) -> Any:
        from ragbench_dagster.reporting.tracking import track

        return dg.MaterializeResult(metadata=metadata(**track(workspace.open(), context.partition_key)))

    return [score_table, summary, leaderboard, gate, report, experiment_run]
