"""Which addresses may be connected to, however they are written."""

from __future__ import annotations

from ipaddress import IPv6Address

import pytest

from gossamer.errors import SettingsError
from gossamer.stages.fetch.addresses import Guard, embedded
from gossamer.urls.keys import hosts
from gossamer.urls.parse import parse
from tests.hostile.spellings import SPELLINGS

PUBLIC = ["93.184.216.34", "8.8.8.8", "1.1.1.1", "2606:2800:220:1:248:1893:25c8:1946", "2a00:1450:4001:81b::200e"]


def host_of(url: str) -> str:
    import pyarrow as pa

    return str(hosts(pa.array([url]))[0])


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_spelling_of_an_inner_address_is_let_through(spelling: str):
    url, why = parse(f"http://{spelling}/")
    assert url is not None, why
    guard = Guard()
    assert not guard.allows(host_of(url).strip("[]"))
    assert not guard.allows(SPELLINGS[spelling])


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_allowed(address: str):
    assert Guard().allows(address)


@pytest.mark.parametrize("form", ["::ffff:{}", "64:ff9b::{}", "::{}"])
@pytest.mark.parametrize(("inner", "public"), [("93.184.216.34", True), ("10.0.0.1", False), ("127.0.0.1", False)])
def test_an_address_inside_another_counts(form: str, inner: str, public: bool):
    address = form.format(inner)
    assert [str(found) for found in embedded(IPv6Address(address))] == [inner]
    assert Guard().allows(address) is (public and form.startswith("64:"))  # the others are no use outside a host


def test_tunnels_carry_addresses():
    def found(text: str) -> list[str]:
        return [str(each) for each in embedded(IPv6Address(text))]

    assert found("2002:7f00:1::") == ["127.0.0.1"]
    assert found("2001:0:5db8:d822:0:0:80ff:fffe") == ["93.184.216.34", "127.0.0.1"]
    assert found("2001:db8::5efe:10.0.0.1") == ["10.0.0.1"]
    assert found("2606:4700::200:5efe:192.168.0.1") == ["192.168.0.1"]
    assert found("::1") == []
    assert found("2606:4700::1111") == []


@pytest.mark.parametrize("word", ["0:5efe", "200:5efe"])
def test_isatap_of_a_public_prefix_is_judged_by_what_it_leads_to(word: str):
    assert not Guard().allows(f"2606:4700::{word}:10.0.0.1")
    assert Guard().allows(f"2606:4700::{word}:8.8.8.8")


@pytest.mark.parametrize(
    "text", ["", "localhost", "127.1", "0x7f000001", "1.2.3.4:80", "[::1]", "999.1.1.1", "fe80::1%eth0", "1.2.3.4 "]
)
def test_what_is_no_plain_public_address_is_refused(text: str):
    assert not Guard().allows(text)


def test_allowed_networks_open_what_they_name_and_nothing_else():
    guard = Guard(["10.1.0.0/16", "127.0.0.1", "fd00::/8"])
    allowed = ["10.1.0.1", "10.1.255.255", "127.0.0.1", "fd12::1", "8.8.8.8"]
    refused = ["10.2.0.1", "127.0.0.2", "fc00::1", "::1", "::ffff:10.1.0.1", "192.168.0.1"]
    assert [guard.allows(address) for address in allowed] == [True] * 5
    assert [guard.allows(address) for address in refused] == [False] * 6


def test_a_network_with_bits_after_its_length_is_that_network():
    assert Guard(["10.1.2.3/8"]).allows("10.255.0.1")


def test_all_addresses_of_one_family_may_be_named():
    guard = Guard(["0.0.0.0/0"])
    assert guard.allows("127.0.0.1")
    assert not guard.allows("::1")


@pytest.mark.parametrize("text", ["10.0.0.0/33", "somewhere", "", "10.0.0/8", "::/129"])
def test_a_network_that_is_none_is_a_settings_error(text: str):
    with pytest.raises(SettingsError, match=r"fetch\.allow_networks: .*10\.0\.0\.0/8"):
        Guard([text])
