"""Who may read what a workspace writes: its own user alone (folders 0700, files 0600)."""

from __future__ import annotations

import errno
import hashlib
import hmac
import os
import secrets
import stat
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from ragbench_dagster.errors import UserError
from ragbench_dagster.io.inputs import read_regular

FOLDER, FILE = 0o700, 0o600
PRIVATE = ("store", ".dagster", ".key", ".forgotten.jsonl")  # below a workspace


def private_folder(path: Path) -> None:
    """Make `path`; the folders that are made on the way are this user's alone, those that exist stay as they are."""
    missing = []
    while not path.exists():
        missing.append(path)
        path = path.parent
    for folder in reversed(missing):
        folder.mkdir(mode=FOLDER, exist_ok=True)


def private_file(path: Path) -> None:
    """Make an empty file for this user alone, where there is none: a database keeps the mode of its file."""
    private_folder(path.parent)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, FILE))


def exposed(root: Path) -> Iterator[Path]:
    """What in the workspace at `root` other users of the machine could read, folders before what is in them.

    What lies in a folder that is closed to them is not looked at.
    """
    for name in PRIVATE:
        yield from _exposed(root / name)


def _exposed(path: Path) -> Iterator[Path]:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return
    if stat.S_ISLNK(mode):
        return
    open_to_others = bool(mode & (stat.S_IRWXG | stat.S_IRWXO))
    if open_to_others:
        yield path
    if stat.S_ISDIR(mode) and open_to_others:
        with os.scandir(path) as found:
            names = sorted(entry.name for entry in found)
        for name in names:
            yield from _exposed(path / name)


def close_to_others(paths: Iterable[Path]) -> int:
    """Take the rights of other users off `paths`; returns how many changed.

    Raises:
        OSError: a path belongs to another user.
    """
    changed = 0
    for path in paths:
        mode = stat.S_IMODE(path.lstat().st_mode)
        if mode & 0o077:
            path.chmod(mode & 0o700)
            changed += 1
    return changed


# The secret of a workspace's keyed hashes (`.key`): made once, whoever comes first, and never silently anew.
#
#     .key               64 hexadecimal digits, mode 0600
#     store/.key-mark    a keyed hash that tells which key the store was hashed with
#
# Another key makes other hashes of the same ids, so that nothing in the store would be found again. What is hashed
# belongs to the store and the stages.

KEY, MARK = ".key", ".key-mark"
_BYTES = 32
_PATIENCE_S = 5.0  # for another process that is writing the key on a file system without links


def workspace_key(root: Path) -> bytes:
    """The key of the workspace at `root`; made where there is none and nothing was hashed yet.

    Raises:
        UserError: the key is gone or is another one than the store was hashed with; it cannot be read or written.
    """
    path, mark = root / KEY, root / "store" / MARK
    key = _read(path)
    if key is None:
        if mark.exists() or next((root / "store" / "traffic").glob("????-??-??"), None) is not None:
            raise UserError(
                f"{path}: the key that store/ was hashed with is gone; restore it from a backup, "
                f"or delete store/traffic and store/{MARK} to begin with a new one (every day is read again)"
            )
        key = _made(path)
    _compare(path, mark, key)
    return key


def _read(path: Path) -> bytes | None:
    until = time.monotonic() + _PATIENCE_S
    while True:
        try:
            data = read_regular(path, 1000).strip()
            if not data and time.monotonic() < until:
                time.sleep(0.02)  # another process has made the file and not yet filled it
                continue
            key = bytes.fromhex(data.decode("ascii"))
            if not key:
                raise ValueError("empty")
            return key
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as fault:
            why = fault.strerror if isinstance(fault, OSError) else "not a key"
            raise UserError(f"{path}: cannot be read ({why}); restore it from a backup") from fault


def _made(path: Path) -> bytes:
    """A new key, or that of the process that was faster."""
    try:
        while True:
            _create(path, secrets.token_bytes(_BYTES).hex().encode("ascii") + b"\n")
            found = _read(path)
            if found is not None:
                return found
    except OSError as fault:
        raise UserError(f"{path}: cannot be written ({fault.strerror}); make its folder writable") from fault


def _create(path: Path, data: bytes) -> None:
    """Put `data` at `path` in one step where nothing is there: a killed process leaves no half a key."""
    handle, name = tempfile.mkstemp(prefix=".", suffix=".part", dir=path.parent)  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(handle)
        os.link(name, path)
    except FileExistsError:
        return
    except FileNotFoundError:
        return  # another process swept the temporary file away: the caller tries again
    except OSError as fault:
        if fault.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
            raise
        _create_without_links(path, data)
    finally:
        Path(name).unlink(missing_ok=True)


def _create_without_links(path: Path, data: bytes) -> None:
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE)
    except FileExistsError:
        return
    with os.fdopen(handle, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(handle)


def _compare(path: Path, mark: Path, key: bytes) -> None:
    """Note which key the store is hashed with, or see that it is this one."""
    mine = hmac.new(key, b"ragbench store", hashlib.sha256).hexdigest()[:32]
    try:
        noted = read_regular(mark, 1000).decode("ascii", "replace").strip()
    except FileNotFoundError:
        noted = ""
    except OSError:
        return  # a store that cannot be read is told by who needs it
    if noted and noted != mine:
        raise UserError(
            f"{path}: not the key that store/ was hashed with; restore that one from a backup, "
            f"or delete store/traffic and store/{MARK} to begin with this one (every day is read again)"
        )
    if not noted:
        try:
            private_folder(mark.parent)
            _create(mark, mine.encode("ascii") + b"\n")
        except OSError:
            return  # read-only: nothing is hashed into it either
