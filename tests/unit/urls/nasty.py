"""Makes nasty URLs: pieces that mean something to some rule, put together at random but always the same."""

from __future__ import annotations

import random

SCHEMES = ["http://", "https://", "HTTP://", "hTTps://", "http:/", "http:", "http:\\\\", "//", "", "ftp://", "mailto:"]
HOSTS = [
    *(
        "example.org",
        "www.example.org",
        "EXAMPLE.org",
        "a.b.c.example.co.uk",
        "xn--bcher-kva.example",
        "bücher.example",
    ),
    *("127.0.0.1", "0x7f.1", "2130706433", "1.2.3", "[::1]", "[2001:DB8::1]", "example.org.", "example.org..", "."),
    *("localhost", "a_b.example", "-a-.example", "a..b.example", "ex%41mple.org", "exa mple.org", "", "xn--a.example"),
    *(
        "user@example.org",
        "u:p@example.org",
        "example.org@",
        "a.0x1",
        "a.1b",
        "x.com-",
        "é.1",
        "\u00ad.com",
        "a\u200bb.com",
    ),
]
PORTS = ["", "", "", ":80", ":443", ":8080", ":", ":0", ":65536", ":x"]
PIECES = [
    *(
        "/",
        "/",
        "/",
        "//",
        "/.",
        "/..",
        "/./",
        "/../",
        "/%2e",
        "/%2E%2e/",
        "/a",
        "/b.html",
        "/index.html",
        "/INDEX.PHP",
    ),
    *("/a;jsessionid=1", ";JSESSIONID=A1!-2", ";sid=", "/..;sid=1/", "/(S(abcdefghij0123456789abcd))", "/default.aspx"),
    *(
        "%41",
        "%4",
        "%",
        "%%34%31",
        "%7e",
        "%7E",
        "%zz",
        "%c3%a9",
        "%C3%A9",
        "%2f",
        "%3F",
        "%00",
        "%25",
        "%2525",
        "%a%62",
    ),
    *(
        "?",
        "?a=1",
        "&b=2",
        "&&",
        "&",
        "?&",
        "?sid=1",
        "&utm_source=x",
        "&UTM_medium=y&",
        ";jsessionid=2",
        "&gclid=1",
        "=&=",
    ),
    *(
        "#",
        "#x",
        "#?a=1",
        " ",
        "\t",
        "\n",
        "\x00",
        "\x7f",
        "\u0080",
        "é",
        "😀",
        "\ufffd",
        "'",
        '"',
        "<",
        ">",
        "`",
        "^",
        "|",
    ),
    *(
        "[",
        "]",
        "{",
        "}",
        "\\",
        "@",
        ":",
        ",",
        "!",
        "$",
        "(",
        ")",
        "*",
        "+",
        "~",
        "_",
        "-",
        ".",
        "..",
        "index.html",
        "utm_=1",
    ),
]


def urls(number: int, seed: int) -> list[str]:
    """This many URLs."""
    chance = random.Random(seed)
    return [_url(chance) for _ in range(number)]


def _url(chance: random.Random) -> str:
    if chance.random() < 0.6:  # nearly canonical ones, which tempt the fast path
        head = chance.choice(SCHEMES[:2]) + chance.choice(HOSTS[:2] + HOSTS[3:4]) + "/"
    else:
        head = chance.choice(SCHEMES) + chance.choice(HOSTS) + chance.choice(PORTS)
    return head + "".join(chance.choice(PIECES) for _ in range(chance.randrange(6)))
