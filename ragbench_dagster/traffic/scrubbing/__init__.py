"""Personal data out of questions, answers and contexts. Nothing here writes a file or logs a text."""

from ragbench_dagster.traffic.scrubbing.identifiers import safe_id
from ragbench_dagster.traffic.scrubbing.placeholders import Request, ScrubbedRequest, is_question
from ragbench_dagster.traffic.scrubbing.quality import read_labelled, scrub_floor, scrub_quality
from ragbench_dagster.traffic.scrubbing.residual import residual
from ragbench_dagster.traffic.scrubbing.scrubber import (
    Scrubbed,
    Scrubber,
    build_scrubber,
    latest_scrubber,
    scrubber_version,
)
from ragbench_dagster.traffic.scrubbing.spans import PLACEHOLDER, Span
from ragbench_dagster.traffic.scrubbing.stage import stage_scrub

__all__ = [
    "PLACEHOLDER", "Request", "Scrubbed", "ScrubbedRequest", "Scrubber", "Span", "build_scrubber", "is_question",
    "latest_scrubber",
    "read_labelled", "residual", "safe_id", "scrub_floor", "scrub_quality", "scrubber_version", "stage_scrub",
]  # fmt: skip
