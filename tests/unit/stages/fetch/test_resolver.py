"""Names → addresses, against a name server that misbehaves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gossamer.errors import SettingsError
from gossamer.simweb.serving.dns import A
from gossamer.stages.fetch import resolver as module
from gossamer.stages.fetch.poller import Poller
from gossamer.stages.fetch.resolver import LONGEST, NEGATIVE, SHORTEST, UNDER_WAY, Answer, Resolver
from tests.hostile.dns import AAAA, HOSTILE_ZONE, DnsServer, at, dns_server, rebinding

PATIENCE = 10.0


class Clock:
    """Time for the cache; c-ares has its own."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def dns() -> Iterator[DnsServer]:
    zone = HOSTILE_ZONE | {"hour.test": at("192.0.2.1", ttl=3600), "moves.test": rebinding("192.0.2.1", "192.0.2.2")}
    with dns_server(zone) as server:
        yield server


class Asker:
    """A resolver and the loop around it."""

    def __init__(self, server: str) -> None:
        self.poller, self.clock = Poller(), Clock()
        self.resolver = Resolver(self.poller, self.clock, [server])

    def all(self, *names: str) -> dict[str, Answer]:
        """Ask for names at once, and wait for all answers."""
        answers: dict[str, Answer] = {}
        for name in names:
            self.resolver.ask(name, lambda answer, name=name: answers.__setitem__(name, answer))  # type: ignore[misc]
        give_up = time.monotonic() + PATIENCE
        while len(answers) < len(set(names)):
            assert time.monotonic() < give_up, set(names) - set(answers)
            self.step()
        return answers

    def step(self) -> None:
        self.resolver.pump()
        wait = self.resolver.wake()
        self.poller.wait(0.1 if wait is None else min(wait, 0.1))

    def one(self, name: str) -> Answer:
        return self.all(name)[name]


@contextmanager
def asking(dns: DnsServer) -> Iterator[Asker]:
    asker = Asker(dns.server)
    try:
        yield asker
    finally:
        asker.resolver.close()
        asker.poller.close()


@pytest.fixture
def asker(dns: DnsServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asker]:
    monkeypatch.setattr(module, "TIMEOUT", 0.3)
    with asking(dns) as found:
        yield found


@pytest.mark.parametrize(
    ("name", "addresses"),
    [
        ("good.test", ("127.0.0.1",)),
        ("GOOD.test", ("127.0.0.1",)),
        ("six.test", ("::1",)),
        ("both.test", ("127.0.0.1",)),  # IPv4 is enough
        ("several.test", ("127.0.0.1", "127.0.0.2", "127.0.0.3")),
        ("many.test", tuple(f"127.0.1.{n}" for n in range(1, 201))),  # over TCP
        ("alias.test", ("127.0.0.1",)),
        ("chain0.test", ("127.0.0.1",)),
        ("truncated.test", ("127.0.0.1",)),
        ("anything.wild.test", ("127.0.0.1",)),
        ("mapped.test", ("::ffff:127.0.0.1",)),
    ],
)
def test_addresses(asker: Asker, name: str, addresses: tuple[str, ...]):
    found = asker.one(name)
    assert (sorted(found.addresses), found.error) == (sorted(addresses), None)


def test_a_late_answer_is_an_answer(dns: DnsServer):
    with asking(dns) as asker:
        assert asker.one("late.test").addresses == ("127.0.0.1",)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("missing.test", "no such name"),
        ("alias-nowhere.test", "no such name"),
        ("nodata.test", "no address"),
        ("alias-self.test", "no address"),
        ("alias-a.test", "no address"),
        ("never.test", "timeout"),
        ("servfail.test", "server"),
        ("refused.test", "refused"),
        ("garbage.test", ""),
        ("short.test", ""),
        ("wrong-id.test", "timeout"),
        ("wrong-question.test", ""),
        ("truncated-always.test", ""),
    ],
)
def test_errors_are_told_in_words(asker: Asker, name: str, error: str):
    found = asker.one(name)
    assert found.addresses == ()
    assert found.error
    assert error in found.error
    assert found.error == found.error.lower()


@pytest.mark.parametrize(
    "name", ["x" * 64 + ".test", "a..test", ".".join(["long"] * 60), "ü.test", "a b.test", "", "\x00"]
)
def test_a_name_that_is_none_has_an_answer_too(asker: Asker, name: str):
    found = asker.one(name)
    assert found.addresses == ()
    assert found.error
    assert asker.resolver._under_way == 0


def test_a_name_is_asked_for_once_however_many_wait_for_it(asker: Asker, dns: DnsServer):
    before = len([q for q in dns.queries if q.name == "several.test"])
    answers: list[Answer] = []
    for _ in range(50):
        asker.resolver.ask("several.test", answers.append)
    while len(answers) < 50:
        asker.step()
    assert len(set(answers)) == 1
    assert len([q for q in dns.queries if q.name == "several.test"]) == before + 1
    assert asker.resolver.questions == 1


def test_ipv6_is_asked_for_only_if_there_is_no_ipv4(asker: Asker, dns: DnsServer):
    before = len(dns.queries)
    asker.all("both.test", "six.test", "missing.test")
    asked = {(q.name, q.type) for q in dns.queries[before:]}
    assert asked == {("both.test", A), ("six.test", A), ("six.test", AAAA), ("missing.test", A)}


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("ttl-0.test", SHORTEST),
        ("ttl-negative.test", SHORTEST),
        ("good.test", 300.0),
        ("hour.test", 3600.0),
        ("ttl-huge.test", LONGEST),
        ("missing.test", NEGATIVE),
        ("nodata.test", NEGATIVE),
        ("servfail.test", NEGATIVE),
        ("a..test", NEGATIVE),
    ],
)
def test_answers_are_kept_for_their_time_within_bounds(asker: Asker, name: str, kept: float):
    assert asker.resolver.known(name) is None
    found = asker.one(name)
    assert found.until == 1000.0 + kept
    asker.clock.now = 1000.0 + kept - 0.1
    assert asker.resolver.known(name) == found
    asker.clock.now = 1000.0 + kept
    assert asker.resolver.known(name) is None


def test_a_name_that_has_moved_is_found_where_it_is_when_its_time_is_over(asker: Asker):
    assert asker.one("moves.test").addresses == ("192.0.2.1",)
    asker.clock.now += SHORTEST
    assert asker.one("moves.test").addresses == ("192.0.2.2",)
    known = asker.resolver.known("moves.test")
    assert known is not None
    assert known.addresses == ("192.0.2.2",)


def test_many_names_at_once_but_only_so_many_questions(asker: Asker):
    names = [f"n{n}.wild.test" for n in range(3 * UNDER_WAY)]
    most = 0
    answers: dict[str, Answer] = {}
    for name in names:
        asker.resolver.ask(name, lambda answer, name=name: answers.__setitem__(name, answer))  # type: ignore[misc]
    assert asker.resolver.wake() == 0.0
    give_up = time.monotonic() + PATIENCE
    while len(answers) < len(names) and time.monotonic() < give_up:
        asker.resolver.pump()
        most = max(most, asker.resolver._under_way)
        asker.step()
    assert {answer.addresses for answer in answers.values()} == {("127.0.0.1",)}
    assert len(answers) == len(names)
    assert most == UNDER_WAY
    assert asker.resolver.wake() is None


def test_dead_names_do_not_hold_up_the_others(asker: Asker):
    start = time.monotonic()
    answers: dict[str, Answer] = {}
    for name in ["never.test", *(f"n{n}.wild.test" for n in range(20))]:
        asker.resolver.ask(name, lambda answer, name=name: answers.__setitem__(name, answer))  # type: ignore[misc]
    while len(answers) < 20:
        asker.step()
    assert "never.test" not in answers
    assert time.monotonic() - start < 0.3  # before the dead one's first try is over


def test_the_cache_is_bounded(asker: Asker, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "CACHED", 50)
    names = [f"n{n}.wild.test" for n in range(120)]
    asker.all(*names)
    assert len(asker.resolver._cache) <= 50
    assert asker.resolver.known(names[0]) is None


def test_closing_while_questions_are_under_way(dns: DnsServer):
    with asking(dns) as asker:
        asker.resolver.ask("never.test", lambda _: pytest.fail("nobody waits any more"))
        asker.step()


@pytest.mark.parametrize("server", ["nowhere", "dns.test", "300.1.1.1"])
def test_a_server_that_is_no_address_is_a_settings_error(server: str):
    with pytest.raises(SettingsError, match=r"fetch\.dns_servers: .*192\.0\.2\.1"):
        Resolver(Poller(), time.monotonic, [server])
