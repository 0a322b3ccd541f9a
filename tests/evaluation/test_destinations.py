"""Which networks a call may reach: what the settings name, and nothing private behind a public name."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
from aiohttp.abc import AbstractResolver
from yarl import URL

from ragbench_dagster.evaluation.destinations import PrivateAddress, Resolver, is_private_name, network_of, redirected


class Names(AbstractResolver):
    """A resolver that gives every name these addresses."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = addresses

    async def resolve(self, host: str, port: int = 0, family: Any = socket.AF_INET) -> list[Any]:
        return [
            {"hostname": host, "host": a, "port": port, "family": family, "proto": 0, "flags": 0}
            for a in self.addresses
        ]

    async def close(self) -> None:
        return


def reached(host: str, *addresses: str, private: bool = False, asked: str = "") -> list[str]:
    found = asyncio.run(Resolver(host, private, Names(*addresses)).resolve(asked or host, 443))
    return [result["host"] for result in found]


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("93.184.216.34", "public"),
        ("2606:2800:220:1:248:1893:25c8:1946", "public"),
        ("10.1.2.3", "private"),
        ("172.31.255.1", "private"),
        ("192.168.0.1", "private"),
        ("100.64.0.1", "private"),
        ("127.8.9.1", "private"),
        ("0.0.0.0", "private"),
        ("::1", "private"),
        ("::", "private"),
        ("fd12:3456::1", "private"),
        ("::ffff:10.0.0.1", "private"),
        ("::ffff:93.184.216.34", "public"),
        ("::127.0.0.1", "private"),
        ("64:ff9b::a00:1", "private"),
        ("2002:0a00:0001::", "private"),
        ("224.0.0.1", "private"),
        ("169.254.169.254", "link-local"),
        ("::ffff:169.254.169.254", "link-local"),
        ("64:ff9b::a9fe:a9fe", "link-local"),
        ("fe80::1%eth0", "link-local"),
        ("fd00:ec2::254", "link-local"),
        ("100.100.100.200", "link-local"),
    ],
)
def test_the_network_of_an_address(address: str, network: str) -> None:
    assert network_of(address) == network


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "rag", "rag.svc.cluster.local", "a.internal", "127.0.0.1", "[::1]", "10.0.0.1", "nas.lan", "x.localhost"])  # fmt: skip
def test_hosts_that_can_only_mean_a_private_network(host: str) -> None:
    assert is_private_name(host)


@pytest.mark.parametrize("host", ["rag.example.com", "2130706433", "0x7f000001", "127.1", "8.8.8.8", "internal.example.com", "localhost.example.com", "10.0.0.1.nip.io"])  # fmt: skip
def test_hosts_that_do_not_say_so(host: str) -> None:
    """Numbers that a resolver would read as an address are no address that the settings name."""
    assert not is_private_name(host)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:192.168.1.1"])
@pytest.mark.parametrize("host", ["rag.example.com", "2130706433", "10.0.0.1.nip.io"])
def test_a_public_name_does_not_lead_into_a_private_network(host: str, address: str) -> None:
    with pytest.raises(PrivateAddress):
        reached(host, address)


def test_of_several_addresses_the_public_ones_are_used() -> None:
    assert reached("rag.example.com", "10.0.0.1", "93.184.216.34") == ["93.184.216.34"]


def test_a_network_that_the_settings_name_is_reached() -> None:
    assert reached("localhost", "127.0.0.1") == ["127.0.0.1"]
    assert reached("rag.internal", "10.0.0.7") == ["10.0.0.7"]
    assert reached("rag.example.com", "10.0.0.7", private=True) == ["10.0.0.7"]


@pytest.mark.parametrize("private", [False, True])
@pytest.mark.parametrize("host", ["metadata.google.internal", "rag.example.com"])
def test_no_name_leads_to_the_address_where_a_cloud_serves_credentials(host: str, private: bool) -> None:
    with pytest.raises(PrivateAddress):
        reached(host, "169.254.169.254", private=private)


def test_the_proxy_of_the_environment_is_not_judged() -> None:
    assert reached("rag.example.com", "127.0.0.1", asked="proxy.example.com") == ["127.0.0.1"]


def test_a_redirect_keeps_the_users_name_and_nothing_of_the_answers() -> None:
    url = URL("http://me:pw@rag.example.com:80/a?code=x")
    assert str(redirected(url, "/b")) == "http://me:pw@rag.example.com/b"
    assert str(redirected(url, "http://you@rag.example.com/b")) == "http://me:pw@rag.example.com/b"
    assert redirected(url, "http://rag.example.com.evil.org/b") is None
    assert redirected(url, "http://rag.example.com@evil.org/b") is None
    assert redirected(url, "//evil.org") is None
    assert redirected(url, "http://[") is None
