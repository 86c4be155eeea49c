"""Nouns: every table of a crawl, as typed schemas with keys and merge rules.

`TABLES` holds Gossamer's own; `tables_with` in `tables.extra` adds the columns plugins declare.
"""

from __future__ import annotations

from gossamer.tables.crawldb import CRAWLDB
from gossamer.tables.hosts import HOSTS, ROBOTS
from gossamer.tables.links import CLUSTERS, EDGES, LINKDB, RANKS
from gossamer.tables.segment import SEGMENT_TABLES
from gossamer.tables.spec import Column, Kind, Merge, Table

__all__ = ["TABLES", "Column", "Kind", "Merge", "Table"]

TABLES: dict[str, Table] = {
    table.name: table for table in (CRAWLDB, *SEGMENT_TABLES, LINKDB, EDGES, RANKS, CLUSTERS, HOSTS, ROBOTS)
}
