"""traffic: sampled_requests[D] -> scrubbed_requests[D], and how well scrubbing works.

Bodies take one day or a range of days: catching up is one run per gap.
"""

from __future__ import annotations

from typing import Any

import dagster as dg

from ragbench_dagster import records
from ragbench_dagster.orchestration.assets.bodies import markdown, metadata, night_asset, per_day
from ragbench_dagster.orchestration.resources import WorkspaceResource, reporter


def traffic_assets(days: dg.DailyPartitionsDefinition) -> list[dg.AssetsDefinition]:
    @night_asset(
        days,
        name="sampled_requests",
        group="traffic",
        kinds={"parquet", "python"},
        deps=[],
        schema=records.SAMPLED,
        description="Which log lines of the day were chosen (file, line, weight), never what they say. "
        "Bottom-k by salted hash of the request id, in each category.",
    )
    def sampled_requests(context: dg.AssetExecutionContext, workspace: WorkspaceResource) -> Any:
        from ragbench_dagster.traffic.ingest import sample_days

        facts = sample_days(workspace.open(), list(context.partition_keys), reporter(context))
        return per_day(
            context,
            {
                day: metadata(
                    **{"dagster/row_count": fact.sampled},
                    read=fact.read,
                    redelivered=fact.redelivered,
                    quarantined=fact.quarantined,
                    follow_ups=fact.follow_ups,
                )
                for day, fact in facts.items()
            },
        )

    @night_asset(
        days,
        name="scrubbed_requests",
        group="traffic",
        kinds={"parquet", "python"},
        deps=[sampled_requests],
        schema=records.SCRUBBED,
        description="The chosen requests with personal data replaced by numbered placeholders, in questions, "
        "answers and contexts alike. The only text that is ever stored.",
    )
    def scrubbed_requests(context: dg.AssetExecutionContext, workspace: WorkspaceResource) -> Any:
        from ragbench_dagster.traffic.ingest import scrub_days
        from ragbench_dagster.traffic.privacy import verify_days

        ws, chosen, tell = workspace.open(), list(context.partition_keys), reporter(context)
        facts = scrub_days(ws, chosen, tell)
        left = verify_days(ws, chosen, tell)
        return per_day(
            context,
            {
                day: metadata(
                    **{"dagster/row_count": fact["rows"]},
                    replaced=sum(fact["replaced"].values()),
                    left_over=sum(left[day].values()),
                    by_type=markdown(["entity", "replaced"], sorted(fact["replaced"].items())),
                )
                for day, fact in facts.items()
            },
        )

    @night_asset(
        days,
        name="scrub_quality",
        group="traffic",
        kinds={"json", "python"},
        deps=[scrubbed_requests],
        description="Precision, recall and F1 of the scrubber for each type of personal data, with intervals, "
        "on the workspace's labelled set (scrub_labels.jsonl).",
    )
    def scrub_quality(context: dg.AssetExecutionContext, workspace: WorkspaceResource) -> dg.MaterializeResult:
        from ragbench_dagster.traffic.privacy import measure_scrubbing

        found = measure_scrubbing(workspace.open(), context.partition_key)
        rows = [
            [t, v["labelled"], v["precision"]["value"], v["recall"]["value"], v["f1"]]
            for t, v in sorted(found["types"].items())
        ]
        whole = found["all"]
        return dg.MaterializeResult(
            metadata=metadata(
                recall=whole["recall"]["value"] if whole else None,
                precision=whole["precision"]["value"] if whole else None,
                labelled_rows=found["rows"],
                table=markdown(["entity", "n", "precision", "recall", "F1"], rows),
            )
        )

    return [sampled_requests, scrubbed_requests, scrub_quality]
