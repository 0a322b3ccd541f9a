"""One branch of the graph for each configured system, made by a factory."""

from __future__ import annotations

from collections import Counter
from typing import Any

import dagster as dg

from ragbench_dagster import records
from ragbench_dagster.orchestration.assets.bodies import markdown, metadata, night_asset
from ragbench_dagster.orchestration.resources import WorkspaceResource, reporter


def system_assets(days: dg.DailyPartitionsDefinition, name: str, kind: str) -> list[dg.AssetsDefinition]:
    """responses -> retrieval_scores and verdicts of the system `name`."""

    @night_asset(
        days,
        name="responses",
        prefix=name,
        group=name,
        kinds={"parquet", kind},
        deps=[dg.AssetKey("dataset_release")],
        schema=records.RESPONSES,
        description=f"What the system {name} ({kind}) answered to each example, scrubbed; its own time stands apart.",
    )
    def responses(context: dg.AssetExecutionContext, workspace: WorkspaceResource) -> Any:
        from ragbench_dagster.evaluation.answers import answer_release
        from ragbench_dagster.evaluation.pipeline import night_release

        ws, day = workspace.open(), context.partition_key
        run = answer_release(ws, day, name, night_release(ws, day), reporter(context))
        counts = Counter(run.responses["status"].to_pylist())
        times = sorted(t for t in run.timings["latency_ms"].to_pylist() if t is not None)
        return dg.MaterializeResult(
            metadata=metadata(
                **{"dagster/row_count": run.responses.num_rows},
                calls=run.calls,
                answered=counts["scored"],
                latency_p50_ms=times[len(times) // 2] if times else None,
                status=markdown(["status", "n"], sorted(counts.items())),
            )
        )

    @night_asset(
        days,
        name="retrieval_scores",
        prefix=name,
        group=name,
        kinds={"parquet", "python"},
        deps=[responses],
        schema=records.SCORES,
        description=f"Retrieval metrics at k of {name}, against the labels.",
    )
    def retrieval_scores(context: dg.AssetExecutionContext, workspace: WorkspaceResource) -> Any:
        from ragbench_dagster.evaluation.pipeline import score_retrieval_night

        table = score_retrieval_night(workspace.open(), context.partition_key, name)
        return dg.MaterializeResult(metadata=metadata(**{"dagster/row_count": table.num_rows}, **means(table)))

    @night_asset(
        days,
        name="verdicts",
        prefix=name,
        group=name,
        kinds={"parquet", "llamaindex"},
        deps=[responses, dg.AssetKey("judge_sentinel")],
        schema=records.SCORES,
        description=f"The judge's typed verdicts on the answers of {name}, from the ledger where they are paid for already.",
    )
    def verdicts(context: dg.AssetExecutionContext, workspace: WorkspaceResource) -> Any:
        from ragbench_dagster.evaluation.pipeline import judge_night

        run = judge_night(workspace.open(), context.partition_key, name, reporter(context))
        return dg.MaterializeResult(
            metadata=metadata(
                **{"dagster/row_count": run.scores.num_rows},
                calls=run.calls,
                cost_usd=run.cost_usd,
                unavailable=run.unavailable,
                status=markdown(["status", "n"], sorted(run.statuses.items())),
                **means(run.scores),
            )
        )

    return [responses, retrieval_scores, verdicts]


def means(table: Any) -> dict[str, float]:
    """Mean value of each metric over its scored rows, for Dagster's plots over partitions."""
    grouped = table.group_by("metric").aggregate([("value", "mean")]).to_pylist()
    return {row["metric"]: row["value_mean"] for row in grouped if row["value_mean"] is not None}
