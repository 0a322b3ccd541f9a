"""Where every stage's files live, and how they are written: whole or not at all.

    store/traffic/DAY/            sampled.parquet, scrubbed.parquet, quarantine.parquet, facts.json
    store/releases/ID/            examples.parquet, forms.parquet, manifest.json
    store/nights/DAY/             manifest.json, calibration.json, scores.parquet, asks.parquet, summary.parquet,
                                  summary.json, leaderboard.json, gate.json, report.html
    store/nights/DAY/SYSTEM/      responses.parquet, timings.parquet, attempts.json, retrieval.parquet,
                                  verdicts.parquet
    store/nights-sample-N/DAY/    the same for `run --sample N`
    store/cache/                  may be deleted at any time
    store/ledger.db               all verdicts (SQLite, or settings.ledger)

Same content, same bytes: Parquet is written with fixed options, JSON with sorted keys; a file whose bytes
would not change is left alone. What the files mean belongs to the stages.
"""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import hmac
import json
import math
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from ragbench_dagster.access import FILE, private_folder, workspace_key
from ragbench_dagster.errors import UserError
from ragbench_dagster.io.inputs import Undecodable, decoded, open_regular, read_regular, reason_of
from ragbench_dagster.results import Result, Stored
from ragbench_dagster.settings import Settings, load_settings

T = TypeVar("T")
S = TypeVar("S", bound=Stored)
R = TypeVar("R", bound=Result)


def dumps(value: Any) -> str:
    """Strict JSON with sorted keys; NaN and infinities become null (unknown is not zero)."""
    return json.dumps(finite(value), ensure_ascii=False, sort_keys=True, indent=1, allow_nan=False, default=str)


def finite(value: Any) -> Any:
    """`value` with every non-finite float as None, numpy scalars as Python's and Structs as dicts of what is set."""
    if isinstance(value, msgspec.Struct):
        value = {name: v for name in value.__struct_fields__ if (v := getattr(value, name)) is not msgspec.UNSET}
    if isinstance(value, dict):
        return {str(k): finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    if hasattr(value, "item") and not isinstance(value, str | bytes):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def digest(*parts: Any, size: int = 16) -> str:
    """Hex content hash of `parts` (text, bytes or JSON values); `size` bytes."""
    total = hashlib.sha256()
    for part in parts:
        blob = (
            part
            if isinstance(part, bytes)
            else (part if isinstance(part, str) else dumps(part)).encode("utf-8", "surrogatepass")
        )
        total.update(len(blob).to_bytes(8, "big"))
        total.update(blob)
    return total.hexdigest()[: 2 * size]


def _explain(fault: OSError, path: Path) -> UserError:
    what = {
        errno.ENOSPC: "no space left on the disk; free some and run again",
        errno.EROFS: "the file system is read-only; make it writable",
        errno.EACCES: "permission denied; make it writable for this user",
        errno.EDQUOT: "the disk quota is used up; free some and run again",
    }.get(fault.errno or 0, f"{fault.strerror or fault}")
    return UserError(f"{path}: cannot be written: {what}")


def write_atomic(path: Path, fill: Callable[[Path], Any]) -> bool:
    """Have `fill` write a temporary file beside `path`, then put it in place in one step.

    Returns:
        False when the file already held exactly these bytes; it is then not touched.

    Raises:
        UserError: full disk, read-only store; the old file is as it was.
    """
    temporary: Path | None = None
    try:
        private_folder(path.parent)
        handle, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)
        temporary = Path(name)
        os.close(handle)
        fill(temporary)
        if path.exists() and path.stat().st_size == temporary.stat().st_size and same_bytes(path, temporary):
            return False
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        temporary.chmod(FILE)
        temporary.replace(path)
        temporary = None
        return True
    except OSError as fault:
        raise _explain(fault, path) from fault
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def sweep(root: Path) -> int:
    """Remove what a killed writer left half-written below `root`; returns how many files and folders.

    The caller holds the store's lock.
    """
    swept = 0
    for folder in (root, root / ".dagster", root / "store"):
        found = folder.rglob(".*.part") if folder.name == "store" else folder.glob(".*.part")
        for path in list(found):
            swept += path.exists()
            if path.is_dir() and not path.is_symlink():  # a release that was not whole yet
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
    return swept


def same_bytes(one: Path, other: Path) -> bool:
    return one.read_bytes() == other.read_bytes()


def write_text(path: Path, text: str) -> bool:
    data = text.encode("utf-8", "replace")
    return write_atomic(path, lambda p: p.write_bytes(data))


def write_json(path: Path, value: Any) -> bool:
    return write_text(path, dumps(value) + "\n")


def write_struct(path: Path, value: S) -> S:
    """Write `value` as JSON with sorted keys; returns it as `read_struct` reads it: no figure is NaN or infinite.

    Raises:
        UserError: as `write_atomic`.
        msgspec.ValidationError: a field holds what its type excludes; nothing is written.
    """
    plain = finite(value)
    stored = msgspec.convert(plain, type(value))
    write_json(path, plain)
    return stored


def read_struct(path: Path, kind: type[T], advice: str = "delete it and run again") -> T | None:
    """The Struct (or list or dict of them) in a JSON file of the store; None where there is no file.

    Args:
        path: the file.
        kind: what it holds.
        advice: what to do about a damaged one.

    Raises:
        UserError: the file is no JSON, or holds another type or an unknown key; the line names file and key.
    """
    try:
        return msgspec.json.decode(read_regular(path), type=kind)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as fault:
        newer = "update this program, or " if "unknown field" in str(fault) else ""
        raise UserError(f"{path}: cannot be read ({_trouble(fault)}); {newer}{advice}") from fault


def _trouble(fault: Exception) -> str:
    """What is wrong with a file of the store, in words that quote no value of it."""
    if isinstance(fault, OSError):
        return str(fault.strerror or fault)
    if isinstance(fault, msgspec.ValidationError):
        return str(fault)[:200]
    return "no JSON" if isinstance(fault, msgspec.DecodeError) else reason_of(fault)


def read_json(path: Path) -> Any:
    """The value in a JSON file of the store, or None where there is no file."""
    try:
        return decoded(json.loads, read_regular(path))
    except FileNotFoundError:
        return None
    except (OSError, Undecodable) as fault:
        why = fault.strerror if isinstance(fault, OSError) else fault
        raise UserError(f"{path}: cannot be read ({why}); delete it and run again") from fault


def write_table(path: Path, table: pa.Table, metadata: dict[str, str] | None = None) -> bool:
    """Write Parquet with fixed options, so that equal tables give equal bytes."""
    if metadata:
        table = table.replace_schema_metadata(dict(sorted(metadata.items())))
    return write_atomic(
        path,
        lambda p: pq.write_table(table, p, compression="zstd", compression_level=3, write_statistics=True),
    )


def read_table(path: Path, columns: list[str] | None = None) -> pa.Table:
    """The Parquet file at `path`.

    Raises:
        UserError: missing or damaged; the line says what to do.
    """
    try:
        open_regular(path).close()
        return decoded(pq.read_table, path, columns=columns)
    except FileNotFoundError as fault:
        raise UserError(f"{path}: no such file; run the stage that writes it") from fault
    except (OSError, Undecodable) as fault:
        raise UserError(f"{path}: damaged Parquet; delete it and run again") from fault


def table_metadata(path: Path) -> dict[bytes, bytes]:
    """What is noted in the head of a Parquet file of the store; empty where it is missing or damaged."""
    try:
        with open_regular(path) as file:
            return dict(decoded(pq.read_schema, file).metadata or {})
    except (OSError, Undecodable):
        return {}


def rows_table(rows: list[dict[str, Any]], schema: pa.Schema) -> pa.Table:
    """Rows (dicts; missing keys are null) as a table of exactly `schema`."""
    return pa.Table.from_pylist(rows, schema=schema)


@dataclass(frozen=True)
class Workspace:
    """A folder with `ragbench.yaml` and the inputs; outputs go to `store/`."""

    root: Path
    settings: Settings
    sample: int = 0  # > 0: nights judge this many examples and live in a folder of their own

    @classmethod
    def open(cls, root: str | Path, settings: Settings | None = None) -> Workspace:
        """The workspace at `root`.

        Raises:
            UserError: no such folder, or a wrong `ragbench.yaml`.
        """
        root = Path(root).expanduser().resolve()
        if not root.is_dir():
            raise UserError(f"{root}: no such workspace; make one with: ragbench init {root.name}")
        return cls(root, settings or load_settings(root / "ragbench.yaml"))

    def __getstate__(self) -> dict[str, Any]:
        """What another process is sent: not the secret, which it reads from the workspace itself."""
        return {name: value for name, value in self.__dict__.items() if name != "secret"}

    def sampled(self, n: int) -> Workspace:
        """The same workspace, whose nights judge a fixed sample of `n` examples (0: all)."""
        return dataclasses.replace(self, sample=n)

    @property
    def store(self) -> Path:
        return self.root / "store"

    @property
    def dagster_home(self) -> Path:
        return self.root / ".dagster"

    def traffic(self, day: str) -> Path:
        return self.store / "traffic" / day

    def release(self, release_id: str) -> Path:
        return self.store / "releases" / release_id

    def night(self, day: str, system: str | None = None) -> Path:
        nights = f"nights-sample-{self.sample}" if self.sample else "nights"
        folder = self.store / nights / day
        return folder / system if system else folder

    def result(self, day: str, kind: type[R]) -> R | None:
        """What the night `day` stored of this kind; None where it did not come to it.

        Raises:
            UserError: as `read_struct`.
        """
        return read_struct(self.night(day) / kind.FILE, kind)

    def write_result(self, day: str, value: R) -> R:
        """Store `value` in the folder of the night `day`; returns it as it is read again (`write_struct`)."""
        return write_struct(self.night(day) / value.FILE, value)

    @property
    def corpus(self) -> Path:
        return self.root / "corpus.jsonl"

    @property
    def labels(self) -> Path:
        return self.root / "labels.jsonl"

    @property
    def calibration(self) -> Path:
        return self.root / self.settings.calibration.source

    @cached_property
    def secret(self) -> bytes:
        """The secret of the keyed hashes, made on first use (`.key`, mode 600).

        Raises:
            UserError: as `workspace_key`.
        """
        return workspace_key(self.root)

    def keyed(self, value: str) -> str:
        """Keyed hash of an identifier: stable here, meaningless elsewhere."""
        return hmac.new(self.secret, value.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:32]
