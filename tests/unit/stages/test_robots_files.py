"""Files of robots.txt as they are found and as they are made to hurt: ways to write a line, encodings, bounds, any bytes."""

from __future__ import annotations

import pickle
import random
import time
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE

import pytest

from gossamer.events import harmless
from gossamer.stages.fetch.robots import (
    LONGEST,
    LONGEST_LINE,
    LONGEST_SAID,
    MOST_SITEMAPS,
    Robots,
    Verdict,
    parse_robots,
)

HOST = "https://example.org"


def robots(text: str | bytes, agent: str = "gossamer") -> Robots:
    return parse_robots(text.encode() if isinstance(text, str) else text, agent)


def allowed(text: str | bytes, path: str, agent: str = "gossamer") -> bool:
    return robots(text, agent).decide(HOST + path).allowed


def rules(*lines: str) -> str:
    return "\n".join(("User-agent: *", *lines))


@pytest.mark.parametrize(
    "line",
    [
        "disallow: /x",
        "DISALLOW:/x",
        "  Disallow\t:  /x  ",
        "Disallow: /x # because",
        "Disallow: /x#because",
        "Disallow /x",
        "Disallow\t/x",
        "Dissallow: /x",
        "dissalow: /x",
        "Disalow: /x",
        "Diasllow: /x",
        "disallaw: /x",
        "Disallow: /x\x0c",
        "\x0bDisallow: /x",
        "\x00Disallow: /x\x00",
    ],
)
def test_ways_to_write_a_rule(line: str):
    found = robots(rules(line))
    assert not found.decide(HOST + "/xy").allowed
    assert found.decide(HOST + "/y").allowed


@pytest.mark.parametrize(
    "line", ["Disallow this /x", "Disallow /x /y", "# Disallow: /x", "Disallowed: /x", "-Disallow: /x", "Disallow"]
)
def test_what_is_no_rule(line: str):
    assert allowed(rules(line), "/x")


@pytest.mark.parametrize(
    "line", ["User-agent: a", "useragent: a", "User agent: a", "USER-AGENT a", "user agent a", "user-agent:a#b"]
)
def test_ways_to_name_an_agent(line: str):
    assert not allowed(f"{line}\nDisallow: /", "/x", "a")


def test_a_word_alone_is_no_line():
    assert not allowed("User-agent: *\nDisallow: /a\nUser-agent\nDisallow: /b", "/b"), "it would end the group"
    assert not allowed("User-agent: *\nDisallow\nUser-agent: other\nDisallow: /b", "/b"), "it would end the list"


def test_colons_in_values():
    assert not allowed(rules("Disallow /a:b"), "/a:b")
    assert allowed(rules("Disallow: /a:b"), "/a")
    assert robots("Sitemap https://example.org/s.xml").sitemaps == ("https://example.org/s.xml",)


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_ends_of_lines(end: str):
    text = end.join(["User-agent: *", "", "Disallow: /a", "Allow: /a/b", ""])
    found = robots(text)
    assert found.decide(HOST + "/a") == Verdict(False, "3: Disallow: /a")
    assert found.decide(HOST + "/a/b") == Verdict(True, "4: Allow: /a/b")


@pytest.mark.parametrize("separator", ["\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"])
def test_other_separators_are_inside_a_line(separator: str):
    found = robots(rules(f"Allow: /a{separator}Disallow: /", "Disallow: /b"))
    assert found.decide(HOST + "/a").allowed
    assert found.decide(HOST + "/b").line == "3: Disallow: /b"


@pytest.mark.parametrize(
    "body",
    [
        BOM_UTF8 + b"User-agent: *\nDisallow: /a",
        BOM_UTF16_LE + "User-agent: *\nDisallow: /a".encode("utf-16-le"),
        BOM_UTF16_BE + "User-agent: *\r\nDisallow: /a".encode("utf-16-be"),
        BOM_UTF16_LE + "User-agent: *\nDisallow: /a\n".encode("utf-16-le") + b"\x00\xd8x",
        "User-agent: *\nDisallow: /a".encode("utf-16-le"),
        "User-agent: *\nDisallow: /a".encode("utf-32"),
    ],
)
def test_marks_and_wide_characters(body: bytes):
    found = robots(body)
    assert found.decide(HOST + "/a") == Verdict(False, "2: Disallow: /a")
    assert found.decide(HOST + "/b").allowed


def test_bytes_that_are_no_utf8_match_as_bytes():
    found = robots(b"User-agent: *\nDisallow: /caf\xe9\n")
    assert found.decide(HOST + "/caf%E9") == Verdict(False, "2: Disallow: /caf\\xe9")
    assert found.decide(HOST + "/café").allowed


def test_values_keep_bytes_that_look_like_white_space():
    assert not allowed(rules("Disallow: /à$"), "/%C3%A0"), "its last byte is a space in Latin-1"


def test_the_line_that_decided_is_harmless_and_short():
    found = robots("\n\nUser-agent: *\n  Disallow: /a\x1b[2J\u202e  # \ttabs\n")
    assert found.decide(HOST + "/a%1B[2J%E2%80%AE").line == "4: Disallow: /a\\x1b[2J\\u202e  # \\x09tabs"
    for filling in ("x", "\x1b", "é"):
        line = robots(rules(f"Disallow: /#{filling * 2000}")).decide(HOST + "/").line
        assert line is not None
        assert len(line) == LONGEST_SAID
        assert line.isprintable()


def test_html_is_no_robots_txt():
    page = "<!doctype html>\n<html><head><title>User-agent: *</title>\n<p>Disallow: /</p>\nUser agent strings are long\nallow /\n"
    assert robots(page) == Robots()


# Delays and sitemaps


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("5", 5.0), ("0", 0.0), ("0.5", 0.5), (".5", 0.5), ("7.", 7.0), ("+3", 3.0), ("10 # slow", 10.0)]
    + [(bad, None) for bad in ("", "nan", "inf", "-1", "ten", "5s", "1_0", "1e999", "9" * 400, "٣", "1,5", "0x10")],
)
def test_crawl_delay(value: str, seconds: float | None):
    assert robots(rules(f"Crawl-delay: {value}", "Disallow: /x")).crawl_delay == seconds


def test_crawl_delay_belongs_to_groups():
    text = "Crawl-delay: 9\nUser-agent: *\nCrawl-delay: 7\nDisallow: /a\nUser-agent: slow\ncrawl-delay: 30\nDisallow:\nUser-agent: quick\nDisallow:"
    delays = {agent: robots(text, agent).crawl_delay for agent in ("anybot", "slow", "quick")}
    assert delays == {"anybot": 7.0, "slow": 30.0, "quick": None}


def test_crawl_delay_is_for_the_agents_named_so_far():
    text = "User-agent: slow\nCrawl-delay: 30\n\nUser-agent: *\nDisallow: /a"
    assert [robots(text, agent).crawl_delay for agent in ("slow", "anybot")] == [30.0, None]


def test_of_several_delays_the_longest_counts():
    assert robots(rules("Crawl-delay: 2", "Crawl-delay: 4", "Crawl-delay: 3", "Crawl-delay: x")).crawl_delay == 4.0


def test_sitemaps_belong_to_no_group():
    text = "Sitemap: https://a/1\nUser-agent: other\nDisallow: /\nSITEMAP:  https://a/2 \nsite-map: https://a/1\nSitemap:\nSitemap: /ü"
    assert robots(text).sitemaps == ("https://a/1", "https://a/2", "/ü")


def test_sitemaps_are_bounded():
    found = robots("".join(f"Sitemap: https://a/{number}\n" for number in range(2 * MOST_SITEMAPS))).sitemaps
    assert len(found) == MOST_SITEMAPS
    assert found[-1] == f"https://a/{MOST_SITEMAPS - 1}"


# Bounds


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_what_is_too_long_is_cut_at_a_line(end: str):
    begin, last = f"User-agent: *{end}", "Disallow: /abc"
    for room, open_ in ((0, False), (-1, True)):  # the last line just fits; it lacks a byte
        filling = "#" * (LONGEST - len(begin) - len(last) - len(end) - room)
        text = f"{begin}{filling}{end}{last}{end}Disallow: /later{end}"
        found = robots(text)
        assert found.decide(HOST + "/later").allowed
        assert [found.decide(HOST + path).allowed for path in ("/abc", "/ab")] == [open_, True]


def test_long_lines_are_cut():
    long = "a" * 2 * LONGEST_LINE
    found = robots(f"User-agent: * # {long}\nDisallow: /{long}\n# {long}\nDisallow: /b\n")
    assert [found.decide(HOST + path).allowed for path in ("/b", "/a")] == [False, True]
    assert max(len(rule.head) for rule in found.rules) < LONGEST_LINE


def seconds(text: str, *paths: str) -> float:
    begun = time.perf_counter()
    found = robots(text)
    for path in paths:
        found.decide(HOST + path)
    return time.perf_counter() - begun


@pytest.mark.parametrize(
    "pattern", ["/" + "*a" * 1000 + "b$", "/" + "*" * 1000 + "b", "/" + "*aa" * 1000 + "*b", "/*" + "a" * 1000 + "b"]
)
def test_linear_time(pattern: str):
    path = "/" + "a" * 2000
    assert allowed(rules(f"Disallow: {pattern}"), path)
    assert seconds(rules(f"Disallow: {pattern}"), *[path] * 10) < 0.5


def test_as_many_rules_as_fit():
    many = "".join(f"Disallow: /*{number:x}z\nAllow: /{number:x}\n" for number in range(18_000))
    assert seconds(rules(many), "/" + "0y" * 1000) < 3


def test_an_agent_named_many_times_takes_each_rule_once():
    agents, many = "User-agent: *\n" * 15_000, "".join(f"Allow: /{number}\n" for number in range(15_000))
    assert seconds(agents + many) < 3


def test_small_and_quick_for_files_as_they_are():
    words = [
        "admin",
        "private",
        "cgi-bin",
        "tmp",
        "search",
        "login",
        "cart",
        "checkout",
        "account",
        "wp-admin",
        "api",
        "includes",
    ]
    text = rules(
        *(f"Disallow: /{word}/" for word in words),
        "Allow: /wp-admin/admin-ajax.php",
        "Disallow: /*?sort=",
        "Disallow: /*.pdf$",
    )
    found, url = robots(text), HOST + "/articles/2024/05/an-ordinary-page.html"
    assert len(pickle.dumps(found)) < 4000
    begun = time.perf_counter()
    for _ in range(10_000):
        found.decide(url)
    assert (time.perf_counter() - begun) / 10_000 < 20e-6, "ten times what it takes"
    assert min(seconds(text) for _ in range(10)) < 2e-3


def test_pickles():
    found = robots(rules("Disallow: /a*b$", "Allow: /a", "Crawl-delay: 2", "Sitemap: /s"))
    again = pickle.loads(pickle.dumps(found))
    assert again == found
    assert again.decide(HOST + "/axb") == Verdict(False, "2: Disallow: /a*b$")


def test_any_bytes():
    chance = random.Random(9309)
    parts = [
        b"User-agent:",
        b"Disallow:",
        b"Allow:",
        b"*",
        b"/",
        b"$",
        b"%",
        b"%2",
        b"%41",
        b"\r",
        b"\n",
        b"\0",
        b"#",
        b" ",
        b"\xff\xfe",
    ]
    parts += [
        b"\xef\xbb\xbf",
        b"\xe2\x80\xa8",
        b"\xed\xa0\x80",
        b"Crawl-delay: 1",
        b"Sitemap: x",
        b"gossamer",
        b"a",
        b"\x85",
    ]
    urls = [HOST + path for path in ("/", "/a", "/%41", "/%", "/\ud800", "/\udcff*$", "", "/é?#x")]
    ruled = 0
    for _ in range(3000):
        count = chance.randrange(60)
        noise = chance.randbytes(count)
        body = b"".join(chance.choice(parts) for _ in range(count)) if chance.random() < 0.7 else noise
        for given in (body, b"User-agent: *\nDisallow: /" + body):
            found = robots(given)
            for url in urls:
                line = found.decide(url).line
                ruled += line is not None
                assert line is None or (len(line) <= LONGEST_SAID and harmless(line) == line)
    assert ruled > 1000, "some of it was read as rules"
