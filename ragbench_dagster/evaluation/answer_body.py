"""The body of a provider's or a system's answer, unpacked within bounds.

A few kilobytes of gzip can unpack to hundreds of megabytes, so bodies are taken packed and unpacked here, piece by
piece, up to a limit. How an answer is asked for belongs to the clients.
"""

from __future__ import annotations

import zlib

from ragbench_dagster.io.inputs import Undecodable

LONGEST_REPLY = 8 << 20  # bytes, unpacked
ACCEPTED = "gzip, deflate"  # the Accept-Encoding that goes with it
_PIECE = 1 << 20


class TooLong(Exception):
    """The body is longer than the limit."""


class Body:
    """Collects a body that arrives in pieces.

    Args:
        encoding: the answer's Content-Encoding.
        limit: bytes, unpacked.

    Raises:
        Undecodable: an encoding that was not asked for, or bytes that are not in it.
        TooLong: more than `limit` bytes.
    """

    def __init__(self, encoding: str = "", limit: int = LONGEST_REPLY) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        encoding = encoding.strip().lower()
        self._gzip = encoding in ("gzip", "x-gzip")
        if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
            raise Undecodable("a content encoding that was not asked for")
        self._packed: zlib._Decompress | None = None
        self._raw_deflate = False
        if encoding not in ("", "identity"):
            self._packed = zlib.decompressobj(31 if self._gzip else 15)

    def feed(self, data: bytes) -> None:
        """Take the next piece."""
        if self._packed is None:
            self._add(data)
            return
        while data:
            try:
                piece = self._packed.decompress(data, _PIECE)
            except zlib.error:
                # "deflate" means zlib (RFC 9110); some servers send it raw.
                if self._gzip or self._raw_deflate or self._size:
                    raise Undecodable("damaged compression") from None
                self._packed, self._raw_deflate = zlib.decompressobj(-15), True
                continue
            self._add(piece)
            data = self._packed.unconsumed_tail
            if self._packed.eof:
                data = self._packed.unused_data if self._gzip else b""
                if data:  # gzip members may follow one another
                    self._packed = zlib.decompressobj(31)

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._limit:
            self._parts.clear()
            raise TooLong
        self._parts.append(piece)

    def content(self) -> bytes:
        """The whole body, once its last piece is there.

        Raises:
            Undecodable: the compressed stream was cut.
        """
        if self._packed is not None and not self._packed.eof and self._size:
            raise Undecodable("cut compression")
        return b"".join(self._parts)
