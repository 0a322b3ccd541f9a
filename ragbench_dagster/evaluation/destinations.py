"""Where calls may go: to the origin that the settings name, and into a private network only where they say so.

A public name that leads to a private address is refused, whoever changed its record (DNS rebinding): the addresses
that are checked are the ones that are connected to. Link-local addresses, where clouds serve credentials, are
reached by no name at all, only where the settings hold the address itself.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from typing import Any, Literal

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

Network = Literal["public", "private", "link-local"]
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

# Names that can only be meant for a private network: one word, or below a domain that no registry gives out.
_PRIVATE_NAME = re.compile(
    r"(?:localhost|[a-z][a-z0-9_-]*|.+\.(?:localhost|local|localdomain|internal|intranet|lan|home|corp|private|svc|home\.arpa))"
)
# Beside 169.254.0.0/16 and fe80::/10: where further clouds serve credentials.
_METADATA = frozenset(map(ipaddress.ip_address, ("fd00:ec2::254", "100.100.100.200", "192.0.0.192")))
_WRAPPED = tuple(map(ipaddress.IPv6Network, ("64:ff9b::/96", "64:ff9b:1::/48", "::/96")))  # an IPv4 address inside


class PrivateAddress(OSError):
    """A name leads to a network that the settings do not name. The message holds no address."""


def network_of(address: str) -> Network:
    """Which network an IP address lies in; an IPv4 address inside an IPv6 one counts as itself."""
    ip: _Address = ipaddress.ip_address(address.split("%")[0])
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour
        if inner is None and int(ip) > 1 and any(ip in net for net in _WRAPPED):
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        ip = inner or ip
    if ip.is_link_local or ip in _METADATA:
        return "link-local"
    return "public" if ip.is_global and not ip.is_multicast else "private"


def is_private_name(host: str) -> bool:
    """True for a host that stands for a private network by itself: an address of one, `localhost`, `rag.internal`."""
    host = host.casefold().rstrip(".")
    try:
        return network_of(host.strip("[]")) != "public"
    except ValueError:
        return bool(_PRIVATE_NAME.fullmatch(host))


class Resolver(AbstractResolver):
    """Finds the addresses of `host` and gives out those that may be connected to.

    Args:
        host: the host of the settings; other names (a proxy of the environment) are not judged.
        private: the settings allow a private network behind a public name.
        inner: finds addresses; default: the system's way.
    """

    def __init__(self, host: str, private: bool, inner: AbstractResolver | None = None) -> None:
        self._host = host.casefold().rstrip(".")
        self._allowed: set[Network] = {"public"}
        if private or is_private_name(host):
            self._allowed.add("private")
        self._inner = inner or aiohttp.resolver.DefaultResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        if host.casefold().rstrip(".") != self._host:
            return found
        kept = [result for result in found if network_of(result["host"]) in self._allowed]
        if found and not kept:
            raise PrivateAddress("the name leads to a private network")
        return kept

    async def close(self) -> None:
        await self._inner.close()


def connector(url: str, private: bool, **options: Any) -> aiohttp.TCPConnector:
    """An aiohttp connector that reaches what `url` names and nothing else."""
    return aiohttp.TCPConnector(resolver=Resolver(URL(url).host or "", private), **options)


def redirected(url: URL, location: str) -> URL | None:
    """The address that an answer of `url` sends to; None where it is another origin."""
    try:
        target = url.join(URL(location))
        same = all(getattr(target, part) == getattr(url, part) for part in ("scheme", "host", "port"))
    except ValueError:
        return None
    return target.with_user(url.user).with_password(url.password) if same else None
