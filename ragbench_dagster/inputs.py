"""The door for what comes from outside: which files are opened, and what a decoder may raise.

Only regular files are opened, and without blocking: behind a name (or a link) may stand a pipe that nobody writes to,
or a device that never ends. A decoder (JSON, YAML, Parquet, a date) may raise anything on hostile bytes: a value
error, a stack that is too deep, a number that is too large, no memory. `decoded` makes one fault of all of them.
What bytes mean, and what becomes of a bad row, belongs to the readers.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeVar

from ragbench_dagster.errors import UserError

T = TypeVar("T")


class Undecodable(ValueError):
    """Bytes that a decoder refuses; the message is a short reason without any of the text."""


def open_regular(path: str | Path) -> IO[bytes]:
    """The file at `path`, open for reading.

    Raises:
        OSError: it cannot be opened, or is a folder, a pipe, a socket or a device (`strerror` says so).
    """
    # O_NONBLOCK: opening a pipe would wait for a writer. It changes nothing for regular files.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, "a folder, not a file", str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "a pipe, socket or device, not a file", str(path))
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read_regular(path: str | Path, limit: int | None = None) -> bytes:
    """The bytes of a regular file.

    Args:
        path: the file.
        limit: most bytes that are read; None: all.

    Raises:
        OSError: as `open_regular`, or the file is longer than `limit`.
    """
    with open_regular(path) as file:
        if limit is None:
            return file.read()
        data = file.read(limit + 1)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"longer than {limit >> 20} MiB", str(path))
    return data


def read_text(path: Path, limit: int | None = None) -> str:
    """The text of a regular UTF-8 file, its byte order mark dropped.

    Raises:
        UserError: it cannot be read or is not UTF-8; the line names the file.
    """
    try:
        return read_regular(path, limit).decode("utf-8-sig")
    except UnicodeDecodeError as fault:
        raise UserError(f"{path.name}: not UTF-8 text; save it as UTF-8") from fault
    except OSError as fault:
        raise UserError(f"{path.name}: cannot be read ({fault.strerror}); check it") from fault


def decoded(decode: Callable[..., T], *given: Any, **more: Any) -> T:
    """`decode(*given, **more)`.

    Raises:
        Undecodable: whatever the decoder raised; an interrupt passes.
    """
    try:
        return decode(*given, **more)
    except Exception as fault:
        raise Undecodable(reason_of(fault)) from fault


def reason_of(fault: Exception) -> str:
    """Why a decoder gave up, in a few words that quote nothing."""
    if isinstance(fault, RecursionError):
        return "nested too deeply"
    if isinstance(fault, MemoryError):
        return "too large"
    if isinstance(fault, OverflowError):
        return "a number is too large"
    return type(fault).__name__
