"""Who may read what a workspace writes: its own user alone (folders 0700, files 0600)."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

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
