"""The Dagster code location. Everything is wired in `orchestration.build`."""

from ragbench_dagster.orchestration.build import build_definitions

defs = build_definitions()
