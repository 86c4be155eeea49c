"""Writes lists of made-up URLs as CSV, for trying Gossamer without a network: `make_urls.py FILE COUNT FIRST`."""

from __future__ import annotations

import csv
import sys
from pathlib import Path

SITES = ("news.example", "shop.example", "wiki.example", "forum.example", "blog.example")


def rows(count: int, first: int) -> list[dict[str, str | int]]:
    """Pages `first` to `first + count`; page n of every site is linked n % 7 times."""
    made: list[dict[str, str | int]] = []
    for number in range(first, first + count):
        site = SITES[number % len(SITES)]
        url = f"https://www.{site}/section-{number % 13}/page-{number}"
        made.append({"url": url, "domain": site, "status": 1, "inlinks": number % 7, "depth": number % 5})
    return made


def main() -> None:
    path, count, first = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, ["url", "domain", "status", "inlinks", "depth"])
        writer.writeheader()
        writer.writerows(rows(count, first))
    print(f"wrote {count:,} URLs to {path}")


if __name__ == "__main__":
    main()
