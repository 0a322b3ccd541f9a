"""Which log files there are: a folder of the workspace, or an fsspec URL. What they hold belongs to `logs`.

A path may name a person (`logs/ana.lopez@example.org.jsonl`): `LogFile.path` stays in memory, and `name`, its
scrubbed form, is what may be stored or printed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from ragbench_dagster.errors import UserError
from ragbench_dagster.inputs import open_regular
from ragbench_dagster.store import Workspace
from ragbench_dagster.traffic.file_names import is_harmless, plain_name
from ragbench_dagster.traffic.timestamps import day_number
from ragbench_dagster.traffic.traces.langfuse import NOT_REQUESTS

SUFFIXES = (".jsonl", ".ndjson", ".csv", ".parquet")
TRACE_SUFFIXES = (*SUFFIXES, ".json")
LFS_POINTER = b"version https://git-lfs.github.com/spec/v1"
# 2026-11-20, 20261120, 2026/11/20, year=2026/month=11/day=20; an hour may follow directly (2026112014)
_DATE = re.compile(
    r"(?<!\d)(20\d\d)[-_/.]?(?:[a-z]+=)?(0[1-9]|1[0-2])[-_/.]?(?:[a-z]+=)?(0[1-9]|[12]\d|3[01])"
    r"(?=\D|$|(?:\d\d){1,3}(?!\d))"
)
# What a remote store says of a file when its content changes.
_MARKS = ("size", "ETag", "etag", "md5Hash", "content_md5", "generation", "LastModified", "last_modified",
          "mtime", "updated", "created")  # fmt: skip


@dataclass(frozen=True)
class LogFile:
    """One log file."""

    path: str = field(repr=False)  # below the source; may name a person
    name: str  # its scrubbed form, unique
    key: str  # keyed hash of the path
    size: int  # bytes
    signature: str  # changes when the content does
    date: int | None  # the day its name speaks of, days since 1970


class Source:
    """`traffic.source`: lists and opens log files."""

    def __init__(self, ws: Workspace) -> None:
        self._ws = ws
        self._traffic = ws.settings.traffic
        self._where = self._traffic.source.reveal("traffic.source")
        self.remote = "://" in self._where
        self.ignored = 0  # files of the last listing that are of no known kind

    def files(self, plain: Callable[[str], str], known: dict[str, str] | None = None) -> list[LogFile]:
        """The log files, sorted by path; hidden and unknown kinds are left out.

        Args:
            plain: scrubs a name.
            known: names scrubbed before, by key.

        Raises:
            UserError: no such folder, or it cannot be listed.
        """
        found, known, self.ignored = [], known or {}, 0
        for path, size, signature in sorted(self._remote_list() if self.remote else self._local_list()):
            key = self._ws.keyed(f"file\0{path}")
            name = known.get(key) or self._name(path, key, plain)
            found.append(LogFile(path, name, key, size, signature, date_in(path)))
        return found

    def open(self, file: LogFile) -> IO[bytes]:
        """The file's bytes.

        Raises:
            UserError: it cannot be read, or is a Git LFS pointer.
        """
        try:
            stream: IO[bytes] = (
                self._fs.open(self._join(file.path), "rb") if self.remote else open_regular(self.local(file))
            )
            start = stream.read(len(LFS_POINTER))
            stream.seek(0)
        except UserError:
            raise
        except OSError as fault:
            raise UserError(f"{file.name}: cannot be read ({fault.strerror or 'I/O error'}); check it") from fault
        except Exception as fault:  # whatever a storage client raises
            raise UserError(f"{file.name}: cannot be read ({type(fault).__name__}); check access") from fault
        if start == LFS_POINTER:
            stream.close()
            raise UserError(f"{file.name}: this is a Git LFS pointer, run git lfs pull")
        return stream

    def local(self, file: LogFile) -> Path:
        return self._root / file.path if self._root.is_dir() else self._root

    @cached_property
    def _root(self) -> Path:
        return self._ws.root / Path(self._where).expanduser()

    def _local_list(self) -> Iterator[tuple[str, int, str]]:
        root = self._root
        if root.is_file():
            yield self._local_entry(root, root.name)
            return
        if not root.is_dir():
            raise UserError(f"{self._traffic.source}: no such folder; put the logs there or set traffic.source")
        for folder, folders, names in os.walk(root, onerror=self._unlistable):
            folders[:] = sorted(f for f in folders if not f.startswith((".", "_")))
            for name in names:
                path = os.path.join(folder, name)
                relative = os.path.relpath(path, root).replace(os.sep, "/")
                # A pipe or socket would block whoever opens it; a broken link is told when it is read.
                if self._is_log(relative) and (os.path.isfile(path) or os.path.islink(path)):
                    yield self._local_entry(Path(path), relative)

    def _local_entry(self, path: Path, relative: str) -> tuple[str, int, str]:
        try:
            stat = path.stat()
        except OSError as fault:
            raise UserError(
                f"{self._traffic.source}: a log file cannot be read ({fault.strerror}); check it"
            ) from fault
        # The change time catches a rewrite that kept size and modification time.
        return relative, stat.st_size, f"{stat.st_size}:{stat.st_mtime_ns}:{stat.st_ctime_ns}"

    def _unlistable(self, fault: OSError) -> None:
        raise UserError(f"{self._traffic.source}: cannot be listed ({fault.strerror}); check its permissions")

    @cached_property
    def _opened(self) -> tuple[Any, str]:
        import fsspec

        try:
            fs, root = fsspec.core.url_to_fs(self._where)
        except ImportError as fault:
            raise UserError(
                "traffic.source: its storage needs a package: pip install 'ragbench-dagster[s3]'"
            ) from fault
        except Exception as fault:
            raise UserError(f"traffic.source: no such storage ({type(fault).__name__}); check the URL") from fault
        return fs, str(root)

    @property
    def _fs(self) -> Any:
        return self._opened[0]

    def _join(self, path: str) -> str:
        root = self._opened[1]
        return root if root.rsplit("/", 1)[-1] == path else f"{root.rstrip('/')}/{path}"

    def _remote_list(self) -> Iterator[tuple[str, int, str]]:
        fs, root = self._opened
        try:
            fs.invalidate_cache()
            listed = fs.find(root, detail=True)
        except FileNotFoundError:
            listed = {}
        except Exception as fault:
            raise UserError(f"traffic.source: cannot be listed ({type(fault).__name__}); check access") from fault
        for full, info in listed.items():
            relative = full[len(root) :].lstrip("/") or full.rsplit("/", 1)[-1]
            if self._is_log(relative):
                marks = [f"{m}={info[m]}" for m in _MARKS if info.get(m) is not None]
                yield relative, int(info.get("size") or 0), "|".join(marks)

    def _is_log(self, relative: str) -> bool:
        parts = relative.lower().split("/")
        if any(p.startswith((".", "_")) for p in parts):
            return False
        if self._traffic.format == "langfuse" and set(parts[:-1]) & set(NOT_REQUESTS):
            return False
        kinds = SUFFIXES if self._traffic.format == "ragbench" else TRACE_SUFFIXES
        if parts[-1].removesuffix(".gz").endswith(kinds):
            return True
        self.ignored += 1
        return False

    def _name(self, path: str, key: str, plain: Callable[[str], str]) -> str:
        if is_harmless(path):
            return path
        scrubbed = plain_name(path, plain)
        # Two people's files must not become one name.
        return path if scrubbed == path else f"{scrubbed}~{key[:8]}"


def date_in(path: str) -> int | None:
    """The last date in a path, as days since 1970."""
    for year, month, day in reversed(_DATE.findall(path)):
        try:
            return day_number(date(int(year), int(month), int(day)))
        except ValueError:
            continue
    return None
