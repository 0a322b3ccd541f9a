"""Cutting a release: a pure function of the scrubbed days in the window and the labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from ragbench_dagster.dataset.examples import build_examples
from ragbench_dagster.dataset.files import read_bytes
from ragbench_dagster.dataset.frozen import (
    Release,
    load_release,
    pointer,
    pointer_file,
    refresh_day_of,
    resolve,
    write_release,
)
from ragbench_dagster.dataset.labels import Label, LabelBook, label_book, read_labels
from ragbench_dagster.dataset.window import (
    Progress,
    inputs_hash,
    read_window,
    scrubbed_file,
    window_days,
)
from ragbench_dagster.errors import UserError
from ragbench_dagster.store import Workspace, digest, write_json


def cut_release(ws: Workspace, day: str, progress: Progress | None = None) -> Release:
    """The release that serves `day`, cut if its refresh day has none of the present inputs.

    Nothing is done where the scrubbed days, the labels and the settings are those it was cut from. A changed
    past day makes another release only if the content changes; the old one stays. With no scrubbed day in the
    window the current release serves.

    Raises:
        UserError: no scrubbed day and no earlier release; a wrong labels file; a broken release.
    """
    refresh = refresh_day_of(ws, day)
    days = window_days(refresh, ws.settings.dataset.window_days)
    present = [d for d in days if scrubbed_file(ws, d).exists()]
    if not present:
        current = resolve(ws, day)
        if current is None:
            raise UserError(
                f"no scrubbed requests in the {len(days)} days up to {refresh}, and no earlier release; "
                "put logs of those days into the source and run again"
            )
        return current
    inputs = inputs_hash(ws, present, _labels_key(ws))
    known = pointer(ws, refresh)
    if known and known["inputs"] == inputs:
        return load_release(ws, known["release"])
    window = read_window(ws, refresh, progress)
    book = scrubbed_labels(ws)
    examples, forms, manifest = build_examples(ws, window, book)
    release = write_release(ws, refresh, examples, forms, manifest)
    write_json(
        pointer_file(ws, refresh),
        {"release": release.id, "inputs": inputs, "present": window.present, "missing": window.missing},
    )
    return release


def _labels_key(ws: Workspace) -> str:
    if not ws.labels.exists():
        return "none"
    from ragbench_dagster.traffic.scan import scrub_mark

    return digest(read_bytes(ws.labels), scrub_mark(ws))


def scrubbed_labels(ws: Workspace) -> LabelBook:
    """The workspace's labels, scrubbed and grouped as the traffic is; empty where there is no file.

    Raises:
        UserError: a wrong labels file.
    """
    if not ws.labels.exists():
        return LabelBook({}, {})
    return label_book(scrub_labels(ws, read_labels(ws.labels)))


def scrub_labels(ws: Workspace, labels: Sequence[Label]) -> list[Label]:
    """`labels` with every text scrubbed as the workspace scrubs its traffic."""
    if not labels:
        return []
    from ragbench_dagster.traffic.scrubbing import Request, build_scrubber, safe_id  # loads recognisers

    scrubber = build_scrubber(ws.settings.scrub)
    plain = lru_cache(maxsize=1 << 16)(scrubber.plain)
    clean = scrubber.requests([Request(x.query, x.expected_answer, (), x.history) for x in labels])
    return [
        replace(
            label,
            query=said.query,
            history=tuple(said.history),
            expected_answer=said.response,
            expected_doc_ids=label.expected_doc_ids
            and tuple(safe_id(i, plain, ws.keyed) for i in label.expected_doc_ids),
            category=None if label.category is None else plain(label.category),
        )
        for label, said in zip(labels, clean, strict=True)
    ]
