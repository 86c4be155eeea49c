"""What robots.txt means: the examples of the RFC and of Google, precedence, spellings, groups."""

from __future__ import annotations

import pytest

from gossamer.stages.fetch.robots import Robots, Verdict, parse_robots

HOST = "https://example.org"


def robots(text: str | bytes, agent: str = "gossamer") -> Robots:
    return parse_robots(text.encode() if isinstance(text, str) else text, agent)


def allowed(text: str | bytes, path: str, agent: str = "gossamer") -> bool:
    return robots(text, agent).decide(HOST + path).allowed


def rules(*lines: str) -> str:
    return "\n".join(("User-agent: *", *lines))


# The RFC's examples


RFC_SIMPLE = """User-Agent: *
Disallow: *.gif$
Disallow: /example/
Allow: /publications/

User-Agent: foobot
Disallow:/
Allow:/example/page.html
Allow:/example/allowed.gif

User-Agent: barbot
User-Agent: bazbot
Disallow: /example/page.html

User-Agent: quxbot
"""


@pytest.mark.parametrize(
    ("agent", "open_to_it"),
    [
        ("anybot", {"/publications/x", "/other"}),
        ("foobot", {"/example/page.html", "/example/allowed.gif"}),
        ("barbot", {"/example/allowed.gif", "/example/x", "/a.gif", "/publications/x", "/other"}),
        ("bazbot", {"/example/allowed.gif", "/example/x", "/a.gif", "/publications/x", "/other"}),
        (
            "quxbot",
            {"/example/page.html", "/example/allowed.gif", "/example/x", "/a.gif", "/publications/x", "/other"},
        ),
    ],
)
def test_simple_example_of_the_rfc(agent: str, open_to_it: set[str]):
    paths = {"/example/page.html", "/example/allowed.gif", "/example/x", "/a.gif", "/publications/x", "/other"}
    assert {path for path in paths if allowed(RFC_SIMPLE, path, agent)} == open_to_it


def test_longest_match_of_the_rfc():
    text = "User-Agent: foobot\nAllow: /example/page/\nDisallow: /example/page/disallowed.gif\n"
    assert allowed(text, "/example/page/x", "foobot")
    assert not allowed(text, "/example/page/disallowed.gif", "foobot")


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("/foo/bar?baz=quz", "/foo/bar?baz=quz"),
        ("/foo/bar/ツ", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%E3%83%84", "/foo/bar/ツ"),
        ("/foo/bar/%e3%83%84", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
        ("/foo/bar/baz", "/foo/bar/%62%61%7A"),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html"),
        ("/path/file-with-a-%2a.html", "/path/file-with-a-%2A.html"),
        ("/path/foo-%24", "/path/foo-$"),
        ("/path/foo-%24", "/path/foo-%24"),
        ("/a b", "/a%20b"),
        ("/{x}|y", "/%7Bx%7D%7Cy"),
        ("/?q='x'", "/?q=%27x%27"),  # the URL standard encodes it in queries
        ("/100%", "/100%"),
        ("/%zz", "/%zz"),
    ],
)
def test_spellings_of_one_path(pattern: str, path: str):
    assert not allowed(rules(f"Disallow: {pattern}$"), path)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("/a%2Fb", "/a/b"),
        ("/a/b", "/a%2Fb"),
        ("/%3Fx", "/?x"),
        ("/A", "/a"),
        ("/a%2A", "/ab"),
        ("/a%24", "/a"),
        ("/é", "/e"),
        ("/%e9", "/é"),  # Latin-1 is not UTF-8
    ],
)
def test_paths_that_differ(pattern: str, path: str):
    assert allowed(rules(f"Disallow: {pattern}"), path)


@pytest.mark.parametrize("octet", range(256))
def test_every_octet_is_spelled_in_one_way(octet: int):
    encoded = {f"/%{octet:02x}", f"/%{octet:02X}"}
    bare = f"/{chr(octet)}"
    if chr(octet).isascii() and (chr(octet).isalnum() or chr(octet) in "-._~"):
        encoded.add(bare)
    for pattern in encoded:
        found = robots(rules(f"Disallow: {pattern}$"))
        assert {path for path in encoded if found.decide(HOST + path).allowed} == set()
    if chr(octet) in "/?:@[]!&()+,;=":
        assert allowed(rules(f"Disallow: /%{octet:02X}"), bare), "reserved: the two mean different things"


# Google's examples of patterns and of precedence


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("/", ["/", "/any", "/?q"], []),
        ("/*", ["/", "/any", "/?q"], []),
        ("/$", ["/"], ["/any", "/?q", "//"]),
        (
            "/fish",
            [
                "/fish",
                "/fish.html",
                "/fish/salmon.html",
                "/fishheads",
                "/fishheads/yummy.html",
                "/fish.php?id=anything",
            ],
            ["/Fish.asp", "/catfish", "/?id=fish", "/desert/fish"],
        ),
        (
            "/fish*",
            [
                "/fish",
                "/fish.html",
                "/fish/salmon.html",
                "/fishheads",
                "/fishheads/yummy.html",
                "/fish.php?id=anything",
            ],
            ["/Fish.asp", "/catfish", "/?id=fish", "/desert/fish"],
        ),
        ("/fish/", ["/fish/", "/fish/?id=anything", "/fish/salmon.htm"], ["/fish", "/fish.html", "/animals/fish/"]),
        (
            "/*.php",
            [
                "/index.php",
                "/filename.php",
                "/folder/filename.php?parameters",
                "/folder/any.php.file.html",
                "/filename.php/",
            ],
            ["/", "/windows.PHP"],
        ),
        (
            "/*.php$",
            ["/filename.php", "/folder/filename.php"],
            ["/filename.php?parameters", "/filename.php/", "/filename.php5"],
        ),
        ("/fish*.php", ["/fish.php", "/fishheads/catfish.php?parameters"], ["/Fish.PHP", "/fishphp"]),
        ("*/private", ["/private", "/a/private/b"], ["/privat"]),
        ("/a*b*c$", ["/abc", "/axbxc", "/abcbc", "/abcc"], ["/abcd", "/acb", "/ab"]),
        ("/a$b", ["/a$b", "/a$bc"], ["/a", "/ab"]),
        ("/a$*", ["/a$", "/a$b"], ["/a"]),
        ("/a*$", ["/a", "/ab"], ["/b"]),
        ("/a**b***", ["/ab", "/axxbxx"], ["/a", "/b"]),
        ("/ab*b$", ["/abb", "/abxb"], ["/ab"]),  # a piece is not found twice in one place
        ("/ab*ba*a", ["/abbaa"], ["/aba", "/abba"]),
        ("fish", [], ["/fish", "/"]),
        ("$", [], ["/"]),
        ("https://example.org/x", [], ["/x"]),
    ],
)
def test_what_a_pattern_matches(pattern: str, matching: list[str], others: list[str]):
    found = robots(rules(f"Disallow: {pattern}"))
    assert [path for path in matching if found.decide(HOST + path).allowed] == []
    assert [path for path in others if not found.decide(HOST + path).allowed] == []


@pytest.mark.parametrize(
    ("lines", "path", "decides"),
    [
        (("Allow: /p", "Disallow: /"), "/page", "2: Allow: /p"),
        (("Allow: /folder", "Disallow: /folder"), "/folder/page", "2: Allow: /folder"),
        (("Disallow: /folder", "Allow: /folder"), "/folder/page", "3: Allow: /folder"),
        (("Allow: /page", "Disallow: /*.htm"), "/page.htm", "3: Disallow: /*.htm"),
        (("Allow: /page", "Disallow: /*.ph"), "/page.php5", "2: Allow: /page"),
        (("Disallow: /page", "Allow: /*.ph"), "/page.php5", "3: Allow: /*.ph"),
        (("Allow: /$", "Disallow: /"), "/", "2: Allow: /$"),
        (("Allow: /$", "Disallow: /"), "/page.htm", "3: Disallow: /"),
        (("Disallow: /x", "Disallow: /x"), "/x", "2: Disallow: /x"),
        (("Allow: /%61%62", "Disallow: /abc"), "/abc", "3: Disallow: /abc"),  # lengths are those of the normal spelling
        (("Allow: /aaaaa", "Disallow: /ツ*"), "/ツ", "3: Disallow: /ツ*"),
        (("Disallow: /*x*", "Allow: /a"), "/axe", "2: Disallow: /*x*"),
        (("Disallow: /a", "Allow: /*/b/c"), "/a/b/c", "3: Allow: /*/b/c"),
    ],
)
def test_which_line_decides(lines: tuple[str, ...], path: str, decides: str):
    assert robots(rules(*lines)).decide(HOST + path) == Verdict("Allow" in decides, decides)


def test_no_rule_matches():
    assert robots(rules("Disallow: /x")).decide(HOST + "/y") == Verdict(True, None)
    assert robots("").decide(HOST + "/y") == Verdict(True, None)


def test_empty_rules_say_nothing():
    assert allowed(rules("Disallow:"), "/x")
    assert not allowed(rules("Disallow: /", "Allow:"), "/x")
    assert not allowed(rules("Disallow: /", "Disallow:"), "/x")


def test_robots_txt_is_always_allowed():
    found = robots(rules("Disallow: /", "Disallow: /robots.txt$", "Disallow: /*robots.txt*"))
    assert found.decide(HOST + "/robots.txt") == found.decide(HOST + "/robots%2Etxt") == Verdict(True, None)
    assert [found.decide(HOST + path).allowed for path in ("/robots.txt.gz", "/a/robots.txt")] == [False, False]


@pytest.mark.parametrize(
    ("url", "open_"),
    [
        ("http://a/x", False),
        ("https://a/x", False),
        ("https://example.org:8443/x?y", False),
        ("http://[::1]/x", False),
        ("https://x/", True),
        ("https://x.example/y/x", True),
        ("https://example.org/y#/x", True),
        ("https://example.org/x#y", False),
        ("https://example.org", True),
    ],
)
def test_path_of_a_url(url: str, open_: bool):
    assert robots(rules("Disallow: /x")).decide(url).allowed is open_


def test_a_fragment_is_not_matched():
    assert allowed(rules("Disallow: /*secret"), "/x#secret")
    assert not allowed(rules("Disallow: /x$"), "/x#secret")


# Groups


def test_groups_of_one_name_are_one():
    text = (
        "User-agent: gossamer\nDisallow: /a\n\nUser-agent: other\nDisallow: /b\n\nUser-agent: GOSSAMER\nDisallow: /c\n"
    )
    assert [allowed(text, path) for path in ("/a", "/b", "/c")] == [False, True, False]
    text = text.replace("gossamer", "*").replace("GOSSAMER", "*")
    assert [allowed(text, path) for path in ("/a", "/b", "/c")] == [False, True, False]


def test_the_star_is_for_those_who_are_not_named():
    text = "User-agent: *\nDisallow: /\nUser-agent: gossamer\nDisallow: /a\n"
    assert [allowed(text, "/b", agent) for agent in ("gossamer", "other", "")] == [True, False, False]
    assert [robots(text, agent).group for agent in ("gossamer", "other", "")] == ["gossamer", "*", "*"]
    assert allowed("User-agent: *\nDisallow: /\nUser-agent: gossamer\n", "/b"), "a group without rules names it too"
    assert robots("User-agent: other\nDisallow: /\n").group is None


@pytest.mark.parametrize(
    ("written", "agent", "same"),
    [
        ("gossamer", "gossamer", True),
        ("GOSSAMER", "Gossamer/2.0 (+https://example.org/bot)", True),
        ("Gossamer/1.0", "gossamer", True),
        ("gossamer bot", "gossamer", True),
        ("goss_amer-2", "Goss_amer-2/7", True),
        ("gossamer2", "gossamer", False),
        ("gossamer", "gossamer2", False),
        ("goss", "gossamer", False),
        ("gossamer-images", "gossamer", False),
        ("gossamer*", "gossamer", True),
        ("*gossamer", "gossamer", False),
        ("(gossamer)", "gossamer", False),
        ("", "", False),
        ("*", "gossamer", True),
        ("* all of you", "gossamer", True),
    ],
)
def test_names_of_agents(written: str, agent: str, same: bool):
    assert allowed(f"User-agent: {written}\nDisallow: /\n", "/x", agent) is not same


def test_rules_before_any_agent_are_nobodys():
    assert allowed("Disallow: /\nAllow: /x\n\nUser-agent: other\nDisallow: /\n", "/y")
    assert not allowed("Disallow: /a\nUser-agent: *\nDisallow: /b", "/b"), "nor do they spoil what follows"


@pytest.mark.parametrize(
    "between", ["", "Sitemap: /s.xml", "Host: example.org", "# words", "???", "Noindex: /", "Crawl-delay: 5"]
)
def test_only_rules_end_a_list_of_agents(between: str):
    text = f"User-agent: gossamer\n{between}\nUser-agent: other\nDisallow: /\n"
    assert not allowed(text, "/x", "gossamer")
    assert not allowed(text, "/x", "other")


@pytest.mark.parametrize("between", ["Disallow:", "Allow: /y", "Disallow: nonsense"])
def test_rules_end_a_list_of_agents(between: str):
    text = f"User-agent: gossamer\n{between}\nUser-agent: other\nDisallow: /\n"
    assert [allowed(text, "/x", agent) for agent in ("gossamer", "other")] == [True, False]


def test_blank_and_other_lines_do_not_end_a_group():
    assert not allowed("User-agent: *\n\n\nSitemap: /s\nDisallow: /a\n\nFoo: bar\n\nDisallow: /b", "/b")


def test_an_agent_line_that_names_nobody_ends_a_group():
    assert allowed("User-agent: *\nDisallow: /a\nUser-agent:\nDisallow: /b", "/b")
