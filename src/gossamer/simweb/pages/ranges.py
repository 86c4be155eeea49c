"""What page kinds may range over, by the name that TOML gives it."""

from __future__ import annotations

from gossamer.simweb.pages.dates import Calendar, Dates
from gossamer.simweb.pages.linked import Facets, Go, Maze, Search
from gossamer.simweb.pages.listings import Args, By, Items, Listing, Range, Sitemaps, has

__all__ = ["RANGES", "Args", "Range", "has"]

RANGES: dict[str, Range] = {
    "site": Range(),
    "item": Items(),
    "all": Listing(),
    "section": By("section"),
    "tag": By("tag"),
    "author": By("author"),
    "year": Dates(1),
    "month": Dates(2),
    "day": Dates(3),
    "calendar": Calendar(),
    "maze": Maze(),
    "facets": Facets(),
    "go": Go(),
    "search": Search(),
    "sitemap": Sitemaps(),
}
