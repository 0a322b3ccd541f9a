"""Releases: cut, resolve, read, compare, export. The one place other parts import them from."""

from ragbench_dagster.dataset.cut import cut_release, scrubbed_labels
from ragbench_dagster.dataset.diff import diff_releases
from ragbench_dagster.dataset.export import FORMATS, export_release
from ragbench_dagster.dataset.frozen import Release, list_releases, load_release, refresh_day_of, resolve
from ragbench_dagster.dataset.window import refresh_day

__all__ = [
    "FORMATS", "Release", "cut_release", "diff_releases", "export_release", "list_releases", "load_release",
    "refresh_day", "refresh_day_of", "resolve", "scrubbed_labels",
]  # fmt: skip
