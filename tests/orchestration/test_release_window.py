"""The window is counted in one place: what a release holds, what a night reads and what Dagster shows agree."""

import dagster as dg
import pytest

from ragbench_dagster.dataset.window import refresh_day
from ragbench_dagster.orchestration.assets.dataset import dataset_assets
from ragbench_dagster.settings import Dataset
from ragbench_dagster.traffic.timestamps import last_days


@pytest.mark.parametrize("window", [1, 14, 90])
@pytest.mark.parametrize("refresh", ["weekly", "monday", "daily"])
def test_a_night_reads_every_day_that_its_release_may_hold_and_none_more(window, refresh):
    reach = Dataset(window_days=window, refresh=refresh).reach_days
    beyond = []
    for night in last_days("2026-03-08", 14):
        held = set(last_days(refresh_day(night, "2020-01-01", refresh), window))
        assert held <= set(last_days(night, reach))
        beyond.append(reach - 1 - (last_days(night, reach).index(max(held))))
    assert max(beyond) == (0 if refresh == "daily" else 6), "the Sunday's window ended on Monday"


@pytest.mark.parametrize("window", [1, 14, 90])
def test_dagster_shows_the_days_of_the_setting(window):
    release = dataset_assets(dg.DailyPartitionsDefinition("2025-01-01"), Dataset(window_days=window).reach_days)[0]
    mapping = release.get_partition_mapping(dg.AssetKey("scrubbed_requests"))
    assert isinstance(mapping, dg.TimeWindowPartitionMapping)
    assert (mapping.start_offset, mapping.end_offset) == (-(window + 5), 0)
