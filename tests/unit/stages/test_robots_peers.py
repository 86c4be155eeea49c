"""Our reading of robots.txt beside two others: Protego, and patterns as plain regular expressions.

Protego rightly differs, or we from it, where the files made here do not go:
- it lets a crawl-delay or an unknown line end a list of user-agents; the RFC and Google's parser do not;
- it finds an agent's name anywhere in a longer one, and takes `name/1.0` in a file as the whole name;
- it decodes reserved characters (`%3F` is `?`), and counts bare ones as three octets in precedence;
- a `$` at the end of its patterns is a dollar sign too, `/index.html` allows `/`, `/robots.txt?x` is always allowed;
- of several delays it takes the last, we the longest.
"""

from __future__ import annotations

import random
import re

import pytest
from protego import Protego

from gossamer.stages.fetch.robots import parse_robots

HOST = "https://example.org"
AGENTS = ["abot", "bbot", "c-bot", "d_bot"]
OCTETS = ["a", "b", "/", "a", "b", "/", "é", "%C3%A9", "%c3%a9", "%61", "%2F", "%2f", "%2A", "~", "%7e", "-", ".", "="]


def some(chance: random.Random, parts: list[str], most: int) -> str:
    return "/" + "".join(chance.choices(parts, k=chance.randrange(most)))


def pattern(chance: random.Random) -> str:
    return some(chance, [*OCTETS, "*", "*", "*"], 6) + chance.choice(["", "", "$"])


def group(chance: random.Random, delays: list[int]) -> list[str]:
    """Agents with comments, blank lines and sitemaps between, then a rule or more with all sorts of lines between."""
    lines = []
    for agent in chance.sample([*AGENTS, "*"], k=chance.randint(1, 2)):
        lines.append(
            chance.choice(["User-agent: {}", "user-agent:{}", "USERAGENT : {} # x", "User-agent {}"]).format(agent)
        )
        lines.append(chance.choice(["", "# x", "Sitemap: https://example.org/s", " "]))
    for _ in range(chance.randint(1, 6)):
        kind = chance.choice(
            ["Disallow: {}", "disallow:{}", "Disalow: {}", "Allow: {} # x", "ALLOW:{}", "Allow {}", "Disallow:"]
        )
        lines.append(kind.format(pattern(chance)))
        lines.append(chance.choice(["", "", "# x", "Noindex: /", "Sitemap: https://example.org/t"]))
    if chance.random() < 0.3:
        lines.append(f"Crawl-delay: {delays.pop(0)}")
    return lines


def test_protego_agrees():
    chance = random.Random(9309)
    said = {True: 0, False: 0}
    for _ in range(1500):
        delays = list(range(1, 9))
        lines = [line for _ in range(chance.randint(1, 5)) for line in group(chance, delays)]
        text = chance.choice(["\n", "\r\n", "\r"]).join(lines)
        peer = Protego.parse(text)
        for agent in (*AGENTS, "other"):
            mine = parse_robots(text.encode(), agent)
            assert mine.crawl_delay == peer.crawl_delay(agent), text
            assert mine.sitemaps == tuple(dict.fromkeys(peer.sitemaps)), text
            for _ in range(10):
                url = HOST + some(chance, [*OCTETS, "*"], 8)
                verdict = mine.decide(url)
                assert verdict.allowed == peer.can_fetch(url, agent), (text, agent, url, verdict)
                said[verdict.allowed] += 1
    assert min(said.values()) > 10_000, "both answers were tried"


def test_protego_agrees_on_queries():
    chance = random.Random(3986)
    found = 0
    for _ in range(20_000):
        one = some(chance, ["a", "?", "&", "=", ":", "@", ",", "*", "a"], 5)
        text = f"User-agent: *\nDisallow: {one}\n"
        url = HOST + some(chance, ["a", "?", "&", "=", ":", "@", ",", "a"], 7)
        allowed = parse_robots(text.encode(), "x").decide(url).allowed
        assert allowed == Protego.parse(text).can_fetch(url, "x"), (text, url)
        found += not allowed
    assert found > 2000


@pytest.mark.parametrize("seed", range(4))
def test_patterns_are_what_they_would_be_as_regular_expressions(seed: int):
    chance = random.Random(seed)
    found = 0
    for _ in range(10_000):
        one = (
            chance.choice(["/", "*"])
            + "".join(chance.choices("ab/**", k=chance.randrange(8)))
            + chance.choice(["", "$"])
        )
        path = "/" + "".join(chance.choices("ab/", k=chance.randrange(9)))
        end = r"\Z" if one.endswith("$") else ""
        expected = re.match(".*".join(map(re.escape, one.removesuffix("$").split("*"))) + end, path) is not None
        robots = parse_robots(f"User-agent: *\nDisallow: {one}".encode(), "x")
        assert robots.decide(HOST + path).allowed is not expected, (one, path)
        found += expected
    assert found > 2000


def test_the_order_of_rules_does_not_matter():
    chance = random.Random(1)
    for _ in range(500):
        lines = [f"{chance.choice(['Allow', 'Disallow'])}: {pattern(chance)}" for _ in range(8)]
        urls = [HOST + some(chance, OCTETS, 8) for _ in range(20)]
        answers = []
        for _ in range(2):
            robots = parse_robots("\n".join(["User-agent: *", *lines]).encode(), "x")
            answers.append([robots.decide(url).allowed for url in urls])
            chance.shuffle(lines)
        assert answers[0] == answers[1]
