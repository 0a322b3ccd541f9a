"""Tells whether a path lies on a network file system. What must not be put there belongs to the caller."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")
# SQLite's WAL needs shared memory between the processes of one host, and locks that work: none of these has both.
NETWORK = frozenset(
    (
        "nfs",
        "nfs4",
        "nfsd",
        "cifs",
        "smb",
        "smb2",
        "smb3",
        "smbfs",
        "ncpfs",
        "afs",
        "coda",
        "ceph",
        "lustre",
        "gpfs",
        "beegfs",
        "pvfs2",
        "orangefs",
        "glusterfs",
        "ocfs2",
        "gfs",
        "gfs2",
        "davfs",
        "webdav",
        "9p",
        "v9fs",
        "virtiofs",
        "vboxsf",
        "prl_fs",
        "vmhgfs",
        "macfuse",
        "osxfs",
    )
)
# FUSE file systems that are a local disk, as in rootless containers.
LOCAL_FUSE = frozenset(
    ("fuse.fuse-overlayfs", "fuse.overlayfs", "fuse.ntfs", "fuse.ntfs-3g", "fuse.ext2", "fuse.lxcfs")
)


def file_system(path: Path, mounts: Path | None = None) -> str:
    """The type of the file system that `path` (which need not exist yet) lies on; "" where it cannot be told.

    Read from Linux's mount table, the longest mount point that holds the path wins.
    """
    target = os.path.realpath(path)
    best, kind = "", ""
    for point, found in _mounted(mounts or MOUNTS):
        inside = target == point or target.startswith(point.rstrip("/") + "/")
        # A later line of the same mount point lies on top of the earlier one.
        if inside and len(point) >= len(best):
            best, kind = point, found
    return kind


def is_network(kind: str) -> bool:
    """True for file system types that are shared between hosts."""
    name = kind.lower()
    return name in NETWORK or (name.startswith("fuse.") and name not in LOCAL_FUSE)


def _mounted(table: Path) -> Iterator[tuple[str, str]]:
    """(mount point, type) of every line of a mountinfo table; proc(5) gives its form."""
    try:
        text = table.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return
    for line in text.split("\n"):
        left, dash, right = line.partition(" - ")
        fields = left.split(" ")
        if dash and len(fields) >= 5 and right:
            point = fields[4]
            for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
                point = point.replace(code, char)
            yield point, right.split(" ")[0]
