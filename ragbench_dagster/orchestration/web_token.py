"""Who may use the web interface: whoever holds the workspace's token.

The address is open to every user and process of this machine, so the address alone must not start runs. The token
lies in the workspace, for its user alone, and stays the same from start to start. A browser gets a cookie of this
start instead: cookies go to every port of a host, and the token must not.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

from ragbench_dagster.errors import UserError
from ragbench_dagster.store import Workspace

BYTES = 32


def token_file(ws: Workspace) -> Path:
    return ws.dagster_home / "token"


def read_token(ws: Workspace) -> str:
    """The workspace's token, made on first use (mode 600).

    Raises:
        UserError: it cannot be read or written, or others can read it.
    """
    path = token_file(ws)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        return _known(path)
    except OSError as fault:
        raise UserError(f"{path}: cannot be written ({fault.strerror}); make its folder writable") from fault
    token = secrets.token_urlsafe(BYTES)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(token + "\n")
    return token


def _known(path: Path) -> str:
    try:
        if path.stat().st_mode & 0o077:
            raise UserError(f"{path}: others can read the token; delete it, the next start makes another")
        token = path.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError) as fault:
        raise UserError(
            f"{path}: cannot be read ({type(fault).__name__}); delete it, the next start makes another"
        ) from fault
    if len(token) < BYTES:
        raise UserError(f"{path}: holds no token; delete it, the next start makes another")
    return token


class Access:
    """Checks what a request brings, for one start on one port.

    Args:
        token: the workspace's.
        port: part of the cookie's name, for two servers of one host share their cookies.
    """

    def __init__(self, token: str, port: int) -> None:
        self._token = token
        self.cookie = f"ragbench_{port}"
        self._session = hmac.new(token.encode(), secrets.token_bytes(16), hashlib.sha256).hexdigest()

    def is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode())

    def set_cookie(self) -> bytes:
        """The header that lets this browser in until the server ends."""
        return f"{self.cookie}={self._session}; HttpOnly; SameSite=Strict; Path=/".encode()

    def allows(self, headers: dict[bytes, list[bytes]]) -> bool:
        """Whether the headers bring the token (`Authorization: Bearer`) or this start's cookie."""
        for value in headers.get(b"authorization", []):
            kind, _, given = value.decode("latin-1").partition(" ")
            if kind.lower() == "bearer" and self.is_token(given.strip()):
                return True
        return any(self._is_session(value.decode("latin-1")) for value in headers.get(b"cookie", []))

    def _is_session(self, header: str) -> bool:
        try:
            found = SimpleCookie(header).get(self.cookie)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode("utf-8", "replace"), self._session.encode())
