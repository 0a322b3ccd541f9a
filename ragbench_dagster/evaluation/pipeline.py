"""One night's evaluation, from the release to the tables the reports read. Glue only: no scoring here."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ragbench_dagster import __version__
from ragbench_dagster.dataset.labels import read_corpus
from ragbench_dagster.dataset.release import Release, load_release, resolve
from ragbench_dagster.errors import UserError
from ragbench_dagster.results import Manifest
from ragbench_dagster.settings import LoggedSystem
from ragbench_dagster.store import Workspace, digest, read_json, read_table, write_table

if TYPE_CHECKING:
    from ragbench_dagster.evaluation.judge_runner import JudgeRun
    from ragbench_dagster.evaluation.logged_requests import LoggedWeek

Progress = Callable[[str, int, int], None]


def night_release(ws: Workspace, day: str) -> Release:
    """The verified release that serves `day`, cut down to the fixed sample of `run --sample`.

    Raises:
        UserError: no release serves the day.
    """
    release = resolve(ws, day)
    if release is None:
        raise UserError(f"{day}: no release serves this day; run: ragbench run --date {day}")
    return sample_release(release, ws.sample) if ws.sample else release


def night_release_of(ws: Workspace, release_id: str) -> Release:
    """The release a past night used, with the night's sample."""
    release = load_release(ws, release_id)
    return sample_release(release, ws.sample) if ws.sample else release


def sample_release(release: Release, n: int) -> Release:
    """`n` examples, each category by its share (largest remainder), those with the smallest hash of their id.

    The same examples each time; a larger sample of the same release holds most of a smaller one.
    """
    table = release.examples
    if table.num_rows <= n:
        return release
    groups: dict[str, list[tuple[str, int]]] = {}
    for row, (name, category) in enumerate(
        zip(table["example_id"].to_pylist(), table["category"].to_pylist(), strict=True)
    ):
        groups.setdefault(category or "", []).append((digest("sample", name), row))
    exact = {c: n * len(rows) / table.num_rows for c, rows in groups.items()}
    take = {c: int(share) for c, share in exact.items()}
    spare = n - sum(take.values())
    for category in sorted(exact, key=lambda c: (take[c] - exact[c], c))[:spare]:
        take[category] += 1
    rows = sorted(row for c, found in groups.items() for _, row in sorted(found)[: take[c]])
    return dataclasses.replace(release, examples=table.take(rows))


def score_retrieval_night(ws: Workspace, day: str, name: str) -> pa.Table:
    """Retrieval metrics of one system; writes retrieval.parquet (records.SCORES)."""
    from ragbench_dagster.evaluation.asks import extra_file, score_asks
    from ragbench_dagster.evaluation.logged_requests import write_week
    from ragbench_dagster.evaluation.retrieval import score_retrieval

    folder = ws.night(day, name)
    responses = read_table(folder / "responses.parquet")
    release, known = night_release(ws, day), corpus_ids(ws)

    def score(answers: pa.Table) -> pa.Table:
        return score_retrieval(answers, release, ws.settings.retrieval_metrics, name, known)

    table = score(responses)
    further = score_asks(folder, responses, score)
    if further is not None:
        write_table(extra_file(folder, "retrieval"), further)
    week = production_week(ws, day, name)
    if week is not None:
        write_week(ws, day, name, week)
        own = score_retrieval(week.responses, week, ws.settings.retrieval_metrics, name, known)
        write_table(folder / "request_retrieval.parquet", own)
    write_table(folder / "retrieval.parquet", table)
    return table


def judge_night(ws: Workspace, day: str, name: str, progress: Progress | None = None) -> JudgeRun:
    """The judge's verdicts on one system's answers; writes verdicts.parquet (records.SCORES)."""
    from ragbench_dagster.evaluation.judge_runner import judge_answers

    responses = read_table(ws.night(day, name) / "responses.parquet")
    return judge_answers(ws, day, name, responses, night_release(ws, day), progress, production_week(ws, day, name))


def production_week(ws: Workspace, day: str, name: str) -> LoggedWeek | None:
    """The requests of the week whose logged answers system `name` is; None for systems that are asked.

    All of a release's labels count, whatever sample of its questions the night has.
    """
    from ragbench_dagster.evaluation.logged_requests import logged_week
    from ragbench_dagster.evaluation.systems import system_settings

    settings = system_settings(ws, name)
    if not isinstance(settings, LoggedSystem):
        return None
    release = load_release(ws, night_release(ws, day).id)
    most = min(settings.max_requests, ws.sample) if ws.sample else settings.max_requests
    return logged_week(ws, day, release.forms, release.examples, most)


def corpus_ids(ws: Workspace) -> set[str]:
    """Ids of the corpus, as answers and labels are stored."""
    if not ws.corpus.exists():
        return set()
    stored = stored_id(ws)
    return {stored(name) for name in read_corpus(ws.corpus)}


def stored_id(ws: Workspace) -> Callable[[str], str]:
    """How an id of the corpus or of a label is written in the store."""
    from ragbench_dagster.traffic.scrubbing import build_scrubber, safe_id

    plain = build_scrubber(ws.settings.scrub, ws.root).plain
    return lambda name: safe_id(name, plain, ws.keyed)


def returned_ids(ws: Workspace, day: str | None) -> set[str]:
    """Every id that a system returned that night."""
    found: set[str] = set()
    for path in sorted(ws.night(day).glob("*/responses.parquet")) if day else []:
        for ids in read_table(path, ["retrieved_ids"])["retrieved_ids"].to_pylist():
            found.update(i for i in ids or [] if i is not None)
    return found


def unknown_labels(ws: Workspace, day: str) -> dict[str, Any]:
    """{"labels", "unknown", "message"} of the night's release against what exists."""
    release = night_release(ws, day)
    return compare_ids(release.examples["expected_doc_ids"].to_pylist(), corpus_ids(ws), returned_ids(ws, day))


def label_fit(ws: Workspace) -> dict[str, Any]:
    """The same for the labels file, against the corpus and the last night."""
    from ragbench_dagster.dataset.labels import read_labels

    nights = sorted(p.parent.parent.name for p in (ws.store / "nights").glob("*/*/responses.parquet"))
    labels = read_labels(ws.labels) if ws.labels.exists() else []
    stored = stored_id(ws)
    expected = [[stored(name) for name in label.expected_doc_ids or ()] for label in labels]
    return compare_ids(expected, corpus_ids(ws), returned_ids(ws, nights[-1] if nights else None))


def compare_ids(expected: Sequence[list[str] | None], corpus: set[str], returned: set[str]) -> dict[str, Any]:
    """How many labels name only ids that neither the corpus nor any system has.

    Such ids are of another level (documents, not chunks) or of an older index: retrieval metrics would read 0.00
    and send people after the wrong fault.
    """
    labels = [set(ids) for ids in expected if ids]
    known = corpus | returned
    unknown = sum(not ids & known for ids in labels) if known else 0
    message = f"the ids of all {len(labels)} labels exist"
    if unknown:
        message = f"{unknown} of {len(labels)} labels name ids that no system and no corpus has"
        message += "; say at which level ids live (document or chunk), or label again after re-chunking"
    elif not known:
        message = f"{len(labels)} labels; no corpus and no retrieved ids to compare with"
    return {"labels": len(labels), "unknown": unknown, "message": message}


def write_manifest(ws: Workspace, day: str) -> Manifest:
    """The conditions of the night: release, system versions, judge, templates, settings. Writes manifest.json."""
    from ragbench_dagster.evaluation.answers import stored_fixed, stored_version
    from ragbench_dagster.evaluation.retrieval import k_warnings
    from ragbench_dagster.evaluation.systems import configured_systems

    release = night_release(ws, day)
    systems: dict[str, str] = {}
    first: dict[str, float | None] = {}
    warnings: list[str] = []
    for name in configured_systems(ws):
        path = ws.night(day, name) / "responses.parquet"
        if path.exists():
            systems[name] = stored_version(ws, day, name)
            attempts = read_json(ws.night(day, name) / "attempts.json")
            first |= {name: attempts["answered_first"]} if attempts else {}
            warnings += [f"{name}: {w}" for w in k_warnings(read_table(path), ws.settings.retrieval_metrics)]
    fit = unknown_labels(ws, day)
    if fit["unknown"]:
        warnings.append(fit["message"])
    lost = release.manifest.get("follow_ups_without_history", 0)
    if lost:
        warnings.append(
            f"{lost} follow-up questions came without their conversation and are no examples; log `history` with them"
        )
    judge = ws.settings.judge
    manifest = Manifest(
        day=day,
        release=release.id,
        examples=release.examples.num_rows,
        window=window_of(release),
        sample=ws.sample or None,
        systems=systems,
        fixed=[name for name in systems if stored_fixed(ws, day, name)],  # the same answer at every ask
        answered_first=first,  # share answered when first asked
        judge=judge.model_dump(mode="json", exclude={"api_base"}),
        judge_label=judge_label(ws),
        metrics=ws.settings.metrics,
        templates=templates(ws),
        settings=ws.settings.model_dump(mode="json", by_alias=True),
        settings_hash=digest(ws.settings.model_dump(mode="json")),
        code_version=__version__,
        warnings=warnings,
    )
    return ws.write_result(day, manifest)


def window_of(release: Release) -> tuple[str | None, str | None]:
    """First and last day whose requests the release holds."""
    days = (release.manifest.get("window") or {}).get("present") or []
    return (days[0], days[-1]) if days else (None, None)


def judge_label(ws: Workspace) -> str:
    """How the judge is named wherever it is shown; the embedded one is called weak."""
    judge = ws.settings.judge
    if judge.provider == "embedded":
        from ragbench_dagster.evaluation.embedded import WEAK_NOTE

        return f"embedded ({WEAK_NOTE})"
    return f"{judge.provider} {judge.model}" + ("" if judge.pinned else " (floating)")


def templates(ws: Workspace) -> dict[str, str]:
    """Metric -> hash of the evaluator's version and template."""
    from ragbench_dagster.evaluation.judge_runner import template_hashes

    return template_hashes(ws)
