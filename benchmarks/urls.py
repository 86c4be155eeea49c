"""URLs per second and core: normalised, filtered and keyed in bulk, beside bare parsing by ada in the same run."""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import can_ada
import pyarrow as pa
from ada_url import normalize_url

from benchmarks.report import table
from gossamer.rules.ruleset import rules_from
from gossamer.settings import load_settings
from gossamer.urls.chain import UrlChain
from gossamer.urls.keys import url_columns

RULES = r"""# what most crawls have
-^(?:file|ftp|mailto):
-(?i)\.(?:gif|jpg|png|ico|css|js|zip|gz|tgz|exe|mp4|mov)$
-[*!@]
-.*(/[^/]+)/[^/]+\1/[^/]+\1/
+.
"""
ROUNDS = 5
# Share of links with something to normalise: a parameter, a fragment, upper case, encoding, dots; the rest is canonical.
ODD = {"tracking": 0.05, "session": 0.02, "fragment": 0.06, "case": 0.02, "encoding": 0.03, "dots": 0.02}


def links(number: int) -> pa.Array:
    """Links as pages have them; a fifth of them is not canonical."""
    chance = random.Random(7)
    return pa.array([_link(n, chance) for n in range(number)])


def _link(number: int, chance: random.Random) -> str:
    url = f"https://www.site{number % 9973}.example/section/{number % 89}/some-page-{number}.html"
    if number % 3 == 0:
        url += f"?id={number}&lang=en"
    at = chance.random()
    for kind, share in ODD.items():
        at -= share
        if at < 0:
            return _odd(url, kind, number)
    return url


def _odd(url: str, kind: str, number: int) -> str:
    mark = "&" if "?" in url else "?"
    return {
        "tracking": f"{url}{mark}utm_source=feed&utm_medium=rss",
        "session": f"{url}{mark}PHPSESSID={number:032x}",
        "fragment": f"{url}#part-{number % 7}",
        "case": url.replace("https://www.site", "HTTPS://WWW.Site"),
        "encoding": url.replace("/some", "/%7Esome%2dother"),
        "dots": url.replace("/some", "/../some"),
    }[kind]


def rate(work: Callable[[], object], number: int) -> float:
    """Thousands a second, the best of some rounds."""
    taken = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return number / min(taken) / 1000


def main(arguments: list[str]) -> None:
    number = int(float(arguments[0]) * 1e6) if arguments else 200_000
    pa.set_cpu_count(1)
    urls = links(number)
    strings = urls.to_pylist()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "regex-urlfilter.txt"
        path.write_text(RULES)
        chain = UrlChain(rules_from(load_settings(sets=[f"filters.regex_files={path}"]).settings))
    normal = chain.normalize(urls, "parse").url
    bare = rate(lambda: [can_ada.parse(url) for url in strings], number)
    work = {
        "normalised and filtered": lambda: chain.check(urls, "parse"),
        "normalised": lambda: chain.normalize(urls, "parse"),
        "filtered": lambda: chain.filter(normal, "parse"),
        "keyed (url_columns)": lambda: url_columns(normal),
        "ada_url.normalize_url, one by one": lambda: [normalize_url(url) for url in strings],
    }
    rates = {name: rate(run, number) for name, run in work.items()} | {"can_ada.parse, one by one": bare}
    odd = 100 * sum(ODD.values())
    table(
        f"{number:,} links, {odd:.0f} % of them not canonical, one core",
        ["what", "thousand URLs/s", "beside can_ada.parse"],
        [[name, f"{value:,.0f}", f"{value / bare:.2f}"] for name, value in rates.items()],
    )


if __name__ == "__main__":
    main(sys.argv[1:])
