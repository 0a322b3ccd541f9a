"""How an asset of this graph is declared: the one place for partitions, owners, kinds and freshness."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import dagster as dg
import pyarrow as pa

from ragbench_dagster.orchestration.bodies import OWNERS, columns, guarded

# Every night is due by 06:00 UTC, four hours after the tick; it may begin at midnight.
FRESH = dg.FreshnessPolicy.cron(deadline_cron="0 6 * * *", lower_bound_delta=timedelta(hours=6), timezone="UTC")


def night_asset(
    days: dg.DailyPartitionsDefinition,
    *,
    name: str,
    group: str,
    kinds: set[str],
    deps: Sequence[Any],
    description: str,
    schema: pa.Schema | None = None,
    prefix: str | None = None,
) -> Callable[[Callable[..., Any]], dg.AssetsDefinition]:
    """Decorator: a daily asset whose body is `body(context, workspace)`."""

    def build(body: Callable[..., Any]) -> dg.AssetsDefinition:
        return dg.asset(
            key=dg.AssetKey([prefix, name]) if prefix else dg.AssetKey(name),
            partitions_def=days,
            group_name=group,
            owners=OWNERS,
            kinds=kinds,
            deps=deps,
            description=description,
            code_version="1",
            freshness_policy=FRESH,
            metadata={"dagster/column_schema": columns(schema)} if schema is not None else None,
        )(guarded(body))

    return build
