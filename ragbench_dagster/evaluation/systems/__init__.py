"""Systems under test: logged answers, engines, retrievers and HTTP endpoints, all asked the same way."""

from __future__ import annotations

from itertools import islice
from typing import Any

from ragbench_dagster.errors import UserError
from ragbench_dagster.evaluation.systems.system import Answer, Clock, Example, ItemError, System, full_query, shown
from ragbench_dagster.registry import member
from ragbench_dagster.settings import SYSTEM_KINDS, EngineSystem, LoggedSystem, SystemSettings
from ragbench_dagster.store import Workspace, digest

__all__ = [
    "Answer",
    "Clock",
    "Example",
    "ItemError",
    "System",
    "build_system",
    "configured_systems",
    "default_systems",
    "full_query",
    "system_settings",
    "system_version",
]

BM25 = "ragbench_dagster.evaluation.bm25:build"
_LOOKED_AT = 20_000  # newest log lines that are searched for an answer


def default_systems(ws: Workspace, has_logged_answers: bool) -> dict[str, SystemSettings]:
    """The systems of a night: those of `ragbench.yaml`, else `logged` and `bm25` where they can answer.

    Args:
        has_logged_answers: whether any log line holds an answer or passages.
    """
    if ws.settings.systems:
        return dict(ws.settings.systems)
    found: dict[str, SystemSettings] = {}
    if ws.corpus.exists():
        found["bm25"] = _builtin("bm25")
    if has_logged_answers:
        found["logged"] = _builtin("logged")
    return found


def configured_systems(ws: Workspace, index: Any = None) -> dict[str, SystemSettings]:
    """The systems of the workspace as it is: `default_systems`, having looked whether its logs hold answers.

    Args:
        index: a `traffic.scan.LogIndex`, where the caller has one.

    Raises:
        UserError: the logs cannot be read.
    """
    if ws.settings.systems:
        return dict(ws.settings.systems)
    if index is None:
        from ragbench_dagster.traffic.scan import scan_logs

        index = scan_logs(ws)
    return default_systems(ws, _holds_answers(ws, index))


def _holds_answers(ws: Workspace, index: Any) -> bool:
    """Whether any of the newest log lines holds an answer or passages."""
    from ragbench_dagster.traffic.files import Source
    from ragbench_dagster.traffic.logs import Reader

    reader = Reader(Source(ws), ws.settings.traffic)
    newest = sorted(index.files, key=lambda file: (file.date or 0, file.path), reverse=True)
    entries = islice((entry for file in newest for entry in reader.read(file)), _LOOKED_AT)
    return any(getattr(entry, name, None) for entry in entries for name in ("response", "nodes", "answer", "documents"))


def _builtin(name: str) -> SystemSettings:
    if name == "logged":
        return LoggedSystem.model_validate({"kind": "logged"})
    return EngineSystem.model_validate({"kind": "engine", "engine": BM25, "params": {"top_k": 10}})


def system_settings(ws: Workspace, name: str) -> SystemSettings:
    """The settings of one system; `logged` and `bm25` exist where the file names no systems.

    Raises:
        UserError: no such system.
    """
    known = ws.settings.systems
    if name in known:
        return known[name]
    if not known and name in ("logged", "bm25"):
        return _builtin(name)
    raise UserError(f"systems.{name}: no such system; ragbench.yaml has {', '.join(sorted(known)) or 'none'}")


def system_version(name: str, settings: SystemSettings, ws: Workspace) -> str:
    """The version set by hand, else a hash of all that answers depend on and that can be seen from here.

    For an engine: settings, the source of its module (its package, in the workspace), and the corpus where its
    factory takes `workspace`. For an endpoint: its settings. For logged answers: how they are looked up.
    """
    if settings.version:
        return settings.version
    parts: list[Any] = [settings.identity()]
    engine = getattr(settings, "engine", None)
    if engine is not None:
        from ragbench_dagster import plugins

        factory = plugins.load_factory(engine, ws.root, f"systems.{name}.engine", shown)
        parts.append(plugins.source_digest(factory, ws.root))
        if plugins.takes(factory, "workspace"):
            parts.append(plugins.file_digest(ws.corpus))
    return f"{settings.kind}-{digest(*parts, size=8)}"


def build_system(name: str, settings: SystemSettings, ws: Workspace) -> System:
    """The system, ready to be asked.

    Raises:
        UserError: an import path, parameter, address or environment variable that does not hold.
    """
    build = member(SYSTEM_KINDS[settings.kind].build)
    system: System = build(name, settings, system_version(name, settings, ws), ws)
    return system
