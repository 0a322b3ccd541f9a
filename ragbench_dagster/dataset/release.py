"""A release: an immutable dataset version. What it holds, how it is read, and which one serves a day.

    store/releases/ID/        examples.parquet, forms.parquet, manifest.json; never rewritten
    store/releases/ID/tombstone.json   alone there: the release was withdrawn by law, see `tombstones`
    store/releases/DAY.json   which release a refresh day has, and what it was made from

The id is the refresh day and a hash of the content (examples and forms, not the bytes of the files, which
another version of pyarrow may lay out differently); files and content are both verified whenever it is read.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from ragbench_dagster.dataset.examples import build_examples
from ragbench_dagster.dataset.labels import Label, LabelBook, label_book, read_labels
from ragbench_dagster.dataset.window import (
    Progress,
    file_hash,
    inputs_hash,
    read_window,
    refresh_day,
    scrubbed_days,
    scrubbed_file,
)
from ragbench_dagster.errors import UserError
from ragbench_dagster.io.inputs import read_bytes
from ragbench_dagster.records import EXAMPLES, FORMS
from ragbench_dagster.store import Workspace, digest, read_json, read_table, write_json, write_table
from ragbench_dagster.traffic.timestamps import last_days

FILES = ("examples.parquet", "forms.parquet")
TOMBSTONE = "tombstone.json"


@dataclass(frozen=True)
class Release:
    """A frozen dataset. `examples` is sorted by example_id, `forms` by form."""

    id: str
    day: str  # its refresh day
    manifest: dict[str, Any]
    examples: pa.Table  # records.EXAMPLES
    forms: pa.Table  # records.FORMS: every normalised form and the example it belongs to


def content_hash(examples: pa.Table, forms: pa.Table) -> str:
    """Hash of what a release says, the same for equal rows whatever wrote the files."""
    encode = msgspec.json.Encoder(order="deterministic").encode
    parts = [encode([table.column(name).to_pylist() for name in table.column_names]) for table in (examples, forms)]
    return digest(*parts, size=6)


def write_release(ws: Workspace, day: str, examples: pa.Table, forms: pa.Table, manifest: dict[str, Any]) -> Release:
    """Freeze a release under `day-<content hash>`; the one already there with this content is returned as it is.

    Raises:
        UserError: the folder exists and does not hold what its name says, or cannot be written.
    """
    release_id = f"{day}-{content_hash(examples, forms)}"
    folder = ws.release(release_id)
    if folder.exists():
        return load_release(ws, release_id)
    part = folder.with_name(f".{release_id}.part")
    shutil.rmtree(part, ignore_errors=True)  # left by a run that was killed
    try:
        write_table(part / "examples.parquet", examples)
        write_table(part / "forms.parquet", forms)
        full = {
            **manifest,
            "id": release_id,
            "day": day,
            "files": {
                name: {"sha256": file_hash(part / name), "bytes": (part / name).stat().st_size} for name in FILES
            },
        }
        write_json(part / "manifest.json", full)
        os.rename(part, folder)
    except OSError as fault:
        raise UserError(f"{folder}: cannot be written: {fault.strerror}") from fault
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return load_release(ws, release_id)


def load_release(ws: Workspace, release_id: str) -> Release:
    """The release with this id, verified: files against the manifest, content against the id.

    Raises:
        UserError: no such release, or it is not what it was when it was cut.
    """
    folder = ws.release(release_id)
    grave = tombstone(ws, release_id)
    if grave is not None:
        raise UserError(
            f"{release_id}: a person's requests were removed from this release; {grave['successor']} stands in its place"
        )
    manifest = read_json(folder / "manifest.json") if _is_id(release_id) else None
    if manifest is None:
        raise UserError(f"{release_id}: no such release; see: ragbench releases list")
    for name in FILES:
        recorded = manifest.get("files", {}).get(name, {}).get("sha256")
        if not (folder / name).exists() or file_hash(folder / name) != recorded:
            raise _broken(folder, f"{name} is not the file that was released")
    examples = _typed(read_table(folder / "examples.parquet"), EXAMPLES, folder)
    forms = _typed(read_table(folder / "forms.parquet"), FORMS, folder)
    if manifest.get("id") != release_id or release_id[11:] != content_hash(examples, forms):
        raise _broken(folder, "its content does not have the hash in its name")
    return Release(release_id, release_id[:10], manifest, examples, forms)


def tombstone(ws: Workspace, release_id: str) -> dict[str, Any] | None:
    """What stands in the place of a release that `ragbench forget` changed: {id, successor, examples}; else None.

    `successor` is the release that is there now, however often it was replaced since.
    """
    grave = read_json(ws.release(release_id) / TOMBSTONE) if _is_id(release_id) else None
    further = grave and tombstone(ws, grave["successor"])
    return {**grave, "successor": further["successor"]} if grave and further else grave


def _is_id(text: str) -> bool:
    return len(text) > 11 and not set(text) & set("/\\") and text[:1].isdigit()


def _typed(table: pa.Table, schema: pa.Schema, folder: Path) -> pa.Table:
    try:
        return table.select(schema.names).cast(schema)
    except (KeyError, pa.ArrowInvalid) as fault:
        raise _broken(folder, "its columns are not those of a release") from fault


def _broken(folder: Path, what: str) -> UserError:
    return UserError(f"{folder}: {what}; restore the folder from a copy, or delete it and run the day again")


def list_releases(ws: Workspace) -> list[dict[str, Any]]:
    """The manifests of all releases, by id. Nothing is verified: `load_release` does that."""
    found = []
    for path in sorted((ws.store / "releases").glob("*/manifest.json")):
        if not path.parent.name.startswith(".") and not (path.parent / TOMBSTONE).exists():
            found.append(read_json(path))
    return found


def pointer_file(ws: Workspace, refresh: str) -> Path:
    return ws.store / "releases" / f"{refresh}.json"


def pointer(ws: Workspace, refresh: str) -> dict[str, Any] | None:
    """Which release a refresh day has: {release, inputs, present, missing}; None before it was cut."""
    return read_json(pointer_file(ws, refresh))


def refresh_day_of(ws: Workspace, day: str) -> str:
    """The refresh day that serves `day` in this workspace, by the first day the store holds."""
    days = scrubbed_days(ws)
    start = ws.settings.traffic.start
    days = [d for d in days if start is None or d >= start.isoformat()] or days
    return refresh_day(day, days[0] if days else day, ws.settings.dataset.refresh)


def latest(ws: Workspace) -> Release | None:
    """The release of the last refresh day that has one; None before the first.

    Raises:
        UserError: that release is broken.
    """
    found = sorted((ws.store / "releases").glob("????-??-??.json"))
    return load_release(ws, read_json(found[-1])["release"]) if found else None


def resolve(ws: Workspace, day: str) -> Release | None:
    """The release that serves `day`: its refresh day's, else the latest one before; None where there is none.

    Raises:
        UserError: that release is broken.
    """
    refresh = refresh_day_of(ws, day)
    found = pointer(ws, refresh)
    if found is None:
        earlier = sorted(path.stem for path in (ws.store / "releases").glob("????-??-??.json") if path.stem <= refresh)
        found = pointer(ws, earlier[-1]) if earlier else None
    return load_release(ws, found["release"]) if found else None


# Cutting a release: a pure function of the scrubbed days in the window and the labels.


def cut_release(ws: Workspace, day: str, progress: Progress | None = None) -> Release:
    """The release that serves `day`, cut if its refresh day has none of the present inputs.

    Nothing is done where the scrubbed days, the labels and the settings are those it was cut from. A changed
    past day makes another release only if the content changes; the old one stays. With no scrubbed day in the
    window the current release serves.

    Raises:
        UserError: no scrubbed day and no earlier release; a wrong labels file; a broken release.
    """
    refresh = refresh_day_of(ws, day)
    days = last_days(refresh, ws.settings.dataset.window_days)
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

    scrubber = build_scrubber(ws.settings.scrub, ws.root)
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
