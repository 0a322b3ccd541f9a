"""From a byte stream to numbered lines: gzip, byte order marks, and where the bytes are damaged.

Only LF ends a line (RFC 8259 lets U+0085, U+2028 and U+2029 stand inside a string). Gzip members follow one
another (RFC 1952, 2.2) and may be padded with zero bytes. What a line says belongs to `decode` and `formats`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import IO

CHUNK = 1 << 16  # bytes read at a time
PIECE = 1 << 20  # bytes unpacked at a time: a few bytes of gzip may hold gigabytes
LONGEST = 64 << 20  # bytes of one line; a longer one is bad, so that memory stays bounded
GZIP_MAGIC = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"


class Damaged(Exception):
    """The stream cannot be read further; what came before is good."""

    cut: int | None = None  # number of the line that the damage cut, where it cut one


def text_chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """The content of a file in pieces, unpacked where it is gzip (told by its first bytes, not its name).

    Raises:
        Damaged: truncated or broken gzip; everything before the damage was yielded.
    """
    first = stream.read(CHUNK)
    if first[:2] == GZIP_MAGIC:
        yield from _gunzip(first, stream)
        return
    while first:
        yield first
        first = stream.read(CHUNK)


def numbered_lines(chunks: Iterator[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """(1-based number, line without its LF or CRLF) of each line; None stands for a line beyond `LONGEST`.

    A byte order mark at the start is dropped.

    Raises:
        Damaged: passed on from `chunks`, after the last, perhaps incomplete, line was yielded.
    """
    number, held, size = 1, list[bytes](), 0
    damage: Damaged | None = None
    source = _without_mark(chunks)
    while True:
        try:
            chunk = next(source, None)
        except Damaged as fault:
            chunk, damage = None, fault
        if chunk is None:
            break
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            yield number, (_joined(held, piece) if size + len(piece) <= LONGEST else None)
            number, held, size = number + 1, [], 0
        size += len(rest)
        if size <= LONGEST:
            held.append(rest)
        else:
            held.clear()
    if size:
        yield number, (_joined(held, b"") if size <= LONGEST else None)
    if damage is not None:
        damage.cut = number if size else None
        raise damage


def _without_mark(chunks: Iterator[bytes]) -> Iterator[bytes]:
    start = b""
    for chunk in chunks:
        start += chunk
        if len(start) >= len(BOM):  # a first gzip member can be shorter than the mark
            yield start.removeprefix(BOM)
            yield from chunks
            return
    yield start.removeprefix(BOM)


def _joined(held: list[bytes], piece: bytes) -> bytes:
    line = b"".join([*held, piece]) if held else piece
    return line[:-1] if line.endswith(b"\r") else line


def _gunzip(buffer: bytes, stream: IO[bytes]) -> Iterator[bytes]:
    member: zlib._Decompress | None = None
    while True:
        if not buffer:
            buffer = stream.read(CHUNK)
            if not buffer:
                break
        if member is None:
            buffer = buffer.lstrip(b"\0")  # padding between and after members
            if not buffer:
                continue
            if len(buffer) < 2:
                buffer += stream.read(CHUNK)
            if buffer[:2] != GZIP_MAGIC:
                raise Damaged("bytes after the gzip stream that are no gzip")
            member = zlib.decompressobj(wbits=31)
        before = member.copy()
        try:
            piece = member.decompress(buffer, PIECE)
        except zlib.error:
            yield from _until_damage(before, buffer)
            raise Damaged("damaged gzip") from None
        if piece:
            yield piece
        if member.eof:
            buffer, member = member.unused_data, None
        else:
            buffer = member.unconsumed_tail
    if member is not None:
        raise Damaged("truncated gzip")


def _until_damage(member: zlib._Decompress, buffer: bytes) -> Iterator[bytes]:
    """The bytes before the damage: zlib throws away what a failing call had unpacked, so feed one at a time."""
    for at in range(len(buffer)):
        try:
            piece = member.decompress(buffer[at : at + 1])
        except zlib.error:
            return
        if piece:
            yield piece
