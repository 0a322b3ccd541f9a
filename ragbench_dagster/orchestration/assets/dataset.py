"""dataset: the frozen release of the window that ends at the last refresh day."""

from __future__ import annotations

from typing import Any

import dagster as dg

from ragbench_dagster import records
from ragbench_dagster.orchestration.assets.bodies import markdown, metadata, night_asset
from ragbench_dagster.orchestration.resources import WorkspaceResource, reporter


def dataset_assets(days: dg.DailyPartitionsDefinition, reach_days: int) -> list[dg.AssetsDefinition]:
    """The release and the check of its deduplication.

    Args:
        days: of the series.
        reach_days: how many days up to a night its release may hold (`Dataset.reach_days`).
    """
    # Dagster clips it at the first day of the series.
    window = dg.TimeWindowPartitionMapping(start_offset=1 - reach_days)

    @night_asset(
        days,
        name="dataset_release",
        group="dataset",
        kinds={"parquet", "python"},
        deps=[dg.AssetDep("scrubbed_requests", partition_mapping=window), dg.AssetDep("scrub_quality")],
        schema=records.EXAMPLES,
        description="An immutable, content-hashed dataset: the deduplicated questions of the window with their labels. "
        "Other days resolve to the release of the last refresh day.",
    )
    def dataset_release(context: dg.AssetExecutionContext, workspace: WorkspaceResource) -> Any:
        from ragbench_dagster.dataset.release import cut_release
        from ragbench_dagster.traffic.privacy import require_clean

        ws = workspace.open()
        require_clean(ws, context.partition_key)
        release = cut_release(ws, context.partition_key, reporter(context))
        table = release.examples
        labelled = table.num_rows - table["expected_doc_ids"].null_count
        categories = table["category"].value_counts().to_pylist()
        rows = sorted(([c["values"], c["counts"]] for c in categories), key=lambda r: (-r[1], str(r[0])))
        return dg.MaterializeResult(
            metadata=metadata(
                **{"dagster/row_count": table.num_rows},
                release=release.id,
                labelled=labelled,
                requests=int(sum(table["count"].to_pylist())),
                categories=markdown(["category", "examples"], rows),
            ),
            data_version=dg.DataVersion(release.id),
        )

    @night_asset(
        days,
        name="dedupe_quality",
        group="dataset",
        kinds={"json", "python"},
        deps=[dataset_release],
        description="Duplicate rate, cluster sizes, the largest merges for review, and false merges on pairs that differ "
        "in one word that matters.",
    )
    def dedupe_quality(context: dg.AssetExecutionContext, workspace: WorkspaceResource) -> dg.MaterializeResult:
        from ragbench_dagster.dataset.dedupe import measure_dedupe

        found = measure_dedupe(workspace.open(), context.partition_key)
        return dg.MaterializeResult(
            metadata=metadata(**{k: v for k, v in found.items() if isinstance(v, int | float | str)})
        )

    return [dataset_release, dedupe_quality]
