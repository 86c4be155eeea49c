"""crawldb: one row per known URL. Facts are stored, scores are computed from them when a batch is generated."""

from __future__ import annotations

import pyarrow as pa

from gossamer.tables.spec import META, TIMESTAMP, Column, Kind, Merge, Table
from gossamer.tables.statuses import PageKind, Status


def url_keys(prefix: str = "", of: str = "the URL", merge: Merge = Merge.KEY) -> tuple[Column, ...]:
    """The two fingerprints every table uses to name a URL."""
    return (
        Column(
            f"{prefix}domain_fp", pa.int64(), f"Fingerprint of the registered domain of {of}.", merge, nullable=False
        ),
        Column(f"{prefix}url_fp", pa.int64(), f"Fingerprint of {of} (normalised).", merge, nullable=False),
    )


CRAWLDB = Table(
    name="crawldb",
    doc="Every URL the crawl knows: its state, the facts behind its score and its schedule.",
    kind=Kind.KEYED,
    key=("domain_fp", "url_fp", "rowkey"),
    order=("rowkey", "domain_fp", "url_fp"),
    shard_by="url_fp",
    version_by="updated_at",
    columns=(
        *url_keys(),
        Column(
            "rowkey",
            pa.string(),
            "Reversed host, scheme, path (`org.apache.nutch:http/path`): a domain's URLs lie together. Part of the key, "
            "so two URLs with equal fingerprints are both kept.",
            Merge.KEY,
            nullable=False,
        ),
        Column("url", pa.string(), "The normalised URL.", Merge.KEEP, nullable=False),
        Column("host", pa.string(), "Host of the URL, as an A-label.", Merge.KEEP),
        Column("status", pa.int8(), "What is believed of the URL.", labels=Status),
        Column("inlinks", pa.int32(), "Links to the URL from other pages, each counted once.", Merge.SUM),
        Column("cash", pa.int64(), "OPIC cash waiting to be spent, in millionths.", Merge.SUM),
        Column("depth", pa.int16(), "Fewest links from a seed.", Merge.MIN),
        Column("useful", pa.bool_(), "Accepted by a usefulness rule."),
        Column("rank", pa.int16(), "Log step of the page's PageRank."),
        Column("updated_at", TIMESTAMP, "When the state of this row was decided; the newer row wins.", Merge.MAX),
        Column("fetched_at", TIMESTAMP, "Last fetch attempt.", measured=True),
        Column("next_fetch", TIMESTAMP, "When the URL is due."),
        Column("modified_at", TIMESTAMP, "When the content last changed, as observed.", measured=True),
        Column("first_seen", TIMESTAMP, "When the URL entered the crawl.", Merge.MIN),
        Column("interval_s", pa.int32(), "Seconds between fetches."),
        Column("failures", pa.int16(), "Failed fetches in a row."),
        Column("signature", pa.int64(), "Hash of the text of the last parse."),
        Column("payload_digest", pa.string(), "SHA-1 of the last payload, base32, as in the WARC."),
        Column("etag", pa.string(), "ETag of the last response, for conditional requests."),
        Column("last_modified", pa.string(), "Last-Modified of the last response, verbatim."),
        Column("segment", pa.string(), "Segment of the last fetch."),
        Column("parsed", pa.string(), "Segment of the parse whose links are counted now."),
        Column("linked_at", TIMESTAMP, "When a link to the URL last appeared.", Merge.MAX),
        Column("unlinked_at", TIMESTAMP, "When a link to the URL last disappeared.", Merge.MAX),
        Column("via", pa.string(), "URL of the first page seen to link here.", Merge.KEEP),
        Column("seed", pa.string(), "Source tag of the seed list that named the URL.", Merge.KEEP),
        Column("kind", pa.int8(), "Page, feed or sitemap.", Merge.KEEP, labels=PageKind),
        Column("target", pa.string(), "Where a redirect or an accepted canonical leads."),
        Column("meta", META, "Free metadata, from seed lists and plugins."),
    ),
)
