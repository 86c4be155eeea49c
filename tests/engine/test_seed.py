"""The seed's algorithms on the seam: generate's top N (A3), capped inlinks (D7), term and frequency as one key (E4)."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Any

import ibis
import pyarrow as pa

from gossamer.engine.base import Engine
from gossamer.urls.keys import fingerprint
from tests.engine.data import EMOJI, same, table
from tests.engine.functions import (
    INDEX,
    INLINKS,
    POSTING,
    RANKED,
    capped_inlinks,
    inverted,
    newest,
    postings,
    top,
)

INT, TEXT, DOUBLE = pa.int64(), pa.string(), pa.float64()


def test_a3_top_n_by_decreasing_score_within_the_hash_of_the_value(engine: Engine) -> None:
    urls = [f"http://h{n % 37}.example/{EMOJI if n % 5 == 0 else ''}{n}" for n in range(3000)]
    rows: list[dict[str, Any]] = [
        {"id": n, "fp": fingerprint(url), "url": url, "links": n * n % 11} for n, url in enumerate(urls)
    ]
    due = engine.values(table({"id": INT, "fp": INT, "url": TEXT, "links": INT}, [tuple(r.values()) for r in rows]))
    chosen = engine.map_batches(due, partial(top, n=25), RANKED, by=due.fp & 7, sort=[ibis.desc("links"), "url"])
    expected = []
    for number in range(8):
        of_bucket = [row for row in rows if row["fp"] & 7 == number]
        assert len(of_bucket) > 250  # the hash spreads
        best = sorted(of_bucket, key=lambda row: (-row["links"], row["url"].encode()))[:25]
        expected += [(row["id"], place) for place, row in enumerate(best)]
    same(engine.collect(chosen), table({"id": INT, "place": INT}, expected))


def test_d7_inlinks_ordered_by_key_and_score_and_capped(engine: Engine) -> None:
    rows: list[dict[str, Any]] = [
        {"dst": f"d{n % 50}", "src": f"s{n}", "score": (n * 7 % 13) / 4, "cash": n * 1_000_003}
        for n in range(4000)
        if n % 50 or n % 3  # d0 has fewer
    ]
    links = engine.values(
        table({"dst": TEXT, "src": TEXT, "score": DOUBLE, "cash": INT}, [tuple(r.values()) for r in rows])
    )
    kept = engine.map_batches(
        links, partial(capped_inlinks, cap=10), INLINKS, by="dst", sort=[ibis.desc("score"), "src"]
    )
    expected: list[tuple[Any, ...]] = []
    for dst in {row["dst"] for row in rows}:
        best = sorted((r for r in rows if r["dst"] == dst), key=lambda r: (-r["score"], r["src"]))[:10]
        cash = sum(row["cash"] for row in best)
        expected += [(dst, row["src"], row["score"], place, cash) for place, row in enumerate(best)]
    same(engine.collect(kept), table(dict(zip(INLINKS.names, INLINKS.types, strict=True)), expected))


def test_e4_old_index_and_new_documents_merge_into_postings_by_frequency(engine: Engine) -> None:
    words = ["web", "graph", EMOJI, "Straße", "a", "crawl", "\uffff"]

    def text(n: int) -> str:
        return " ".join(words[(n * i + i // 3) % len(words)] for i in range(n % 17 + 1))

    old = [(f"u{n}", text(n)) for n in range(60)]
    new = [(f"u{n}", text(n + 100)) for n in range(40, 90)]  # 20 documents were fetched again
    documents = [(*row, 1) for row in old] + [(*row, 0) for row in new]
    parts = engine.values(table({"url": TEXT, "text": TEXT, "age": pa.int8()}, documents))

    mapped = engine.map_batches(parts, postings, POSTING, partitions=3)
    merged = engine.map_batches(mapped, newest, POSTING, by=["term", "url"], sort=["age"])
    index = engine.map_batches(merged, inverted, INDEX, by="term", sort=[ibis.desc("frequency"), "url"])

    terms: dict[str, dict[str, int]] = defaultdict(dict)
    for rows in (old, new):
        for url, body in rows:
            for term in set(body.split()):
                terms[term][url] = body.split().count(term)
    expected = []
    for term, counts in terms.items():
        best = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        expected.append((term, [url for url, _ in best], [n for _, n in best]))
    same(engine.collect(index), table(dict(zip(INDEX.names, INDEX.types, strict=True)), expected))
