"""Where `fetch.connect_to` leads, and what `[[host]]` says: patterns, the first that fits counts."""

from __future__ import annotations

import pytest

from gossamer.errors import SettingsError
from gossamer.settings import FetchSettings, HostSettings
from gossamer.stages.fetch.http import _host_part, _target
from gossamer.stages.fetch.origins import FILES, Manners, Origin, place
from gossamer.stages.fetch.politeness import Queue

QUEUE = Queue("a.test", (), 1.0, 1)


@pytest.mark.parametrize("text", ["127.0.0.1", "127.0.0.1:8080", "[::1]:8080", "[::1]", "::1", "10.0.0.1:1"])
def test_addresses(text: str):
    assert place(text) == text
    assert _target(text).endswith(":") or _target(text).rpartition(":")[2].isdigit()
    assert _host_part(text) in ("127.0.0.1", "::1", "10.0.0.1")


@pytest.mark.parametrize(
    "text",
    ["", ":8080", "garbage", "localhost:80", "127.0.0.1:notaport", "127.0.0.1:99999", "127.0.0.1:0", "1.2.3", "[x]:1"],
)
def test_what_is_no_address_is_refused(text: str):
    with pytest.raises(SettingsError, match="is no address"):
        Manners(FetchSettings(connect_to={"*": text}), [])


def test_the_first_pattern_that_fits_counts():
    rules = [HostSettings("*.b.test", 200, 3, cap=7), HostSettings("*.test", 50)]
    manners = Manners(FetchSettings(connect_to={"a.test": "127.0.0.1:1", "*.test": "127.0.0.1:2"}), rules)
    assert manners.mapped("a.test") == "127.0.0.1:1"
    assert manners.mapped("x.a.test") == "127.0.0.1:2"
    assert manners.mapped("a.example") is None
    assert manners.pace("x.b.test") == {"delay": 0.2, "connections": 3, "cap": 7}
    assert manners.pace("a.test") == {"delay": 0.05, "connections": 0, "cap": 0}
    assert manners.pace("a.example") == {}
    assert manners.pace("") == {"delay": 0.0, "connections": FILES}  # files


@pytest.mark.parametrize(
    ("name", "host", "literal"),
    [
        ("http://a.test", "a.test", None),
        ("https://a.test:8443", "a.test", None),
        ("http://127.0.0.1:80", "127.0.0.1", "127.0.0.1"),
        ("http://[::1]:8080", "[::1]", "::1"),
        ("http://[::1]", "[::1]", "::1"),
        ("file://", "", None),
    ],
)
def test_origins(name: str, host: str, literal: str | None):
    origin = Origin(name, QUEUE)
    assert (origin.host, origin.literal) == (host, literal)
