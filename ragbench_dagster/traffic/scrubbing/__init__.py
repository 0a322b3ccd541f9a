"""Personal data out of questions, answers and contexts. Nothing here writes a file or logs a text."""

from ragbench_dagster.traffic.scrubbing.independent_check import residual
from ragbench_dagster.traffic.scrubbing.placeholders import Request, ScrubbedRequest, is_question, safe_id
from ragbench_dagster.traffic.scrubbing.quality import read_labelled, scrub_floor, scrub_quality
from ragbench_dagster.traffic.scrubbing.scrubber import (
    Scrubbed,
    Scrubber,
    build_scrubber,
    latest_scrubber,
    scrubber_version,
    stage_scrub,
)
from ragbench_dagster.traffic.scrubbing.spans import PLACEHOLDER, Span

__all__ = [
    "PLACEHOLDER", "Request", "Scrubbed", "ScrubbedRequest", "Scrubber", "Span", "build_scrubber", "is_question",
    "latest_scrubber",
    "read_labelled", "residual", "safe_id", "scrub_floor", "scrub_quality", "scrubber_version", "stage_scrub",
]  # fmt: skip
