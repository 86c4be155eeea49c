"""The tables of one segment: what was to be fetched, what came of it, and what parsing found."""

from __future__ import annotations

import pyarrow as pa

from gossamer.tables.crawldb import url_keys
from gossamer.tables.spec import META, TIMESTAMP, Column, Kind, Merge, Table
from gossamer.tables.statuses import LinkKind, Outcome, PageKind, ParseStatus, Status

ROWKEY = Column("rowkey", pa.string(), "Row key of the URL (reversed host).", nullable=False)
URL = Column("url", pa.string(), "The normalised URL.", nullable=False)
SEGMENT = Column("segment", pa.string(), "The segment, `r<round>-<n>`.", nullable=False)
RULES_VERSION = Column("rules_version", pa.int64(), "Version of the rule set that decided.", measured=True)

FETCHLIST = Table(
    name="fetchlist",
    doc="One batch: the URLs to fetch, cut into partitions that are fetched side by side.",
    kind=Kind.SEGMENT,
    key=("domain_fp", "url_fp"),
    order=("partition", "position", "domain_fp", "url_fp"),
    columns=(
        *url_keys(),
        ROWKEY,
        URL,
        Column("host", pa.string(), "Host of the URL.", nullable=False),
        SEGMENT,
        Column("partition", pa.int32(), "All URLs of a registered domain (or address) share one.", nullable=False),
        Column("queue", pa.string(), "Politeness queue: host, domain or address."),
        Column("position", pa.int64(), "Random order inside the partition: xxh3(url_fp, segment).", nullable=False),
        Column("score", pa.float64(), "Final score, by which the batch was chosen."),
        Column("parts", pa.map_(pa.string(), pa.float64()), "Score after each plugin of the chain, by name."),
        Column("kind", pa.int8(), "Page, feed or sitemap.", labels=PageKind),
        Column("depth", pa.int16(), "Fewest links from a seed."),
        Column("status", pa.int8(), "What was believed of the URL when the batch was made.", labels=Status),
        Column("useful", pa.bool_(), "Accepted by a usefulness rule."),
        Column("rank", pa.int16(), "Log step of the page's PageRank."),
        Column("cash", pa.int64(), "OPIC cash waiting to be spent, in millionths."),
        Column("updated_at", TIMESTAMP, "When the state of the URL was decided."),
        Column("fetched_at", TIMESTAMP, "Previous fetch attempt, if any.", measured=True),
        Column("next_fetch", TIMESTAMP, "Since when it was due."),
        Column("modified_at", TIMESTAMP, "When the content last changed, as observed.", measured=True),
        Column("interval_s", pa.int32(), "Seconds between fetches."),
        Column("failures", pa.int16(), "Failed fetches in a row so far."),
        Column("signature", pa.int64(), "Text hash of the previous parse."),
        Column("payload_digest", pa.string(), "Digest of the previous payload, to write revisit records."),
        Column("etag", pa.string(), "For If-None-Match."),
        Column("last_modified", pa.string(), "For If-Modified-Since."),
        Column("fetched_in", pa.string(), "Segment of the previous fetch."),
        Column("parsed", pa.string(), "Segment of the parse whose links are counted."),
        Column("target", pa.string(), "Where a redirect or an accepted canonical led."),
        Column("meta", META, "Free metadata."),
        RULES_VERSION,
    ),
)

FETCH = Table(
    name="fetch",
    doc="One row per request that was decided: success, failure, redirect hop or refusal, and where its bytes lie.",
    kind=Kind.SEGMENT,
    key=("domain_fp", "url_fp"),
    order=(),
    columns=(
        *url_keys(),
        ROWKEY,
        URL,
        SEGMENT,
        Column("via", pa.string(), "The URL that redirected here, in a redirect chain."),
        Column("outcome", pa.int8(), "What the fetch gave.", nullable=False, labels=Outcome),
        Column("http_code", pa.int16(), "Status code of the response."),
        Column("started_at", TIMESTAMP, "When the request was sent.", measured=True),
        Column("fetched_at", TIMESTAMP, "When the outcome was known.", measured=True),
        Column("latency_ms", pa.int32(), "Time to the first byte.", measured=True),
        Column("retry_after_s", pa.int32(), "Seconds the server asked us to wait."),
        Column("content_type", pa.string(), "Content-Type of the response, verbatim."),
        Column("length", pa.int64(), "Bytes of body stored."),
        Column("truncated", pa.bool_(), "The body was cut."),
        Column("truncated_reason", pa.string(), "Why: length, time, disconnect, unspecified."),
        Column("redirect_to", pa.string(), "Normalised target of a redirect."),
        Column("etag", pa.string(), "ETag of the response."),
        Column("last_modified", pa.string(), "Last-Modified of the response, verbatim."),
        Column("payload_digest", pa.string(), "SHA-1 of the payload, base32."),
        Column("ip", pa.string(), "Address connected to.", measured=True),
        Column("protocol", pa.string(), "http/1.1, h2, … as negotiated.", measured=True),
        Column("tls", pa.string(), "Result of certificate verification."),
        Column("warc_file", pa.string(), "Name of the WARC file.", measured=True),
        Column("warc_offset", pa.int64(), "Offset of the response record.", measured=True),
        Column("warc_length", pa.int64(), "Compressed length of the record.", measured=True),
        Column("error", pa.string(), "Error class and detail, when it failed."),
        Column("robots_line", pa.string(), "The robots.txt line that decided, with its number."),
        Column("x_robots_tag", pa.string(), "X-Robots-Tag of the response."),
        RULES_VERSION,
    ),
)

PARSE = Table(
    name="parse",
    doc="What parsing found out about each fetched document, apart from its text and links.",
    kind=Kind.SEGMENT,
    key=("domain_fp", "url_fp"),
    order=("rowkey", "domain_fp", "url_fp"),
    columns=(
        *url_keys(),
        ROWKEY,
        URL,
        SEGMENT,
        Column("status", pa.int8(), "How parsing went.", nullable=False, labels=ParseStatus),
        Column("parser", pa.string(), "The parser plugin used."),
        Column("error", pa.string(), "Why it failed, when it did."),
        Column("content_type", pa.string(), "Sniffed media type."),
        Column("charset", pa.string(), "Charset used to decode."),
        Column("title", pa.string(), "Title."),
        Column("description", pa.string(), "Meta description."),
        Column("keywords", pa.string(), "Meta keywords."),
        Column("canonical", pa.string(), "Canonical URL, normalised."),
        Column("refresh_to", pa.string(), "Target of a meta refresh, normalised."),
        Column("hreflang", META, "Alternates by language."),
        Column("noindex", pa.bool_(), "Robots meta or header says noindex."),
        Column("nofollow", pa.bool_(), "Robots meta or header says nofollow."),
        Column("noarchive", pa.bool_(), "Robots meta or header says noarchive."),
        Column("published_at", TIMESTAMP, "Publication date the document names."),
        Column("modified_at", TIMESTAMP, "Modification date the document names."),
        Column("language", pa.string(), "Language as detected."),
        Column("language_declared", pa.string(), "Language as declared."),
        Column("signature", pa.int64(), "Exact hash of the text."),
        Column("simhash", pa.int64(), "64-bit SimHash of the text."),
        Column("outlinks", pa.int32(), "Outlinks kept."),
        Column("outlinks_dropped", pa.map_(pa.string(), pa.int32()), "Outlinks dropped, by reason."),
        Column("change_interval_s", pa.int32(), "From a sitemap's changefreq, when known."),
        Column("fetched_at", TIMESTAMP, "When the document was fetched.", measured=True),
        Column("meta", META, "OpenGraph, JSON-LD basics and what plugins add."),
        RULES_VERSION,
    ),
)

TEXT = Table(
    name="text",
    doc="The text of each parsed document.",
    kind=Kind.SEGMENT,
    key=("domain_fp", "url_fp"),
    order=("rowkey", "domain_fp", "url_fp"),
    columns=(
        *url_keys(),
        ROWKEY,
        URL,
        SEGMENT,
        Column("main", pa.string(), "Main text, boilerplate removed."),
        Column("full", pa.string(), "All visible text."),
        Column("headings", pa.list_(pa.string()), "Headings in document order."),
    ),
)

OUTLINKS = Table(
    name="outlinks",
    doc="Every link kept from every parsed document, duplicates of a page folded.",
    kind=Kind.SEGMENT,
    key=("src_domain_fp", "src_url_fp", "domain_fp", "url_fp"),
    order=("src_rowkey", "src_domain_fp", "src_url_fp", "domain_fp", "url_fp"),
    columns=(
        *url_keys("src_", "the linking page"),
        Column("src_rowkey", pa.string(), "Row key of the linking page.", nullable=False),
        Column("src_url", pa.string(), "The linking page.", nullable=False),
        *url_keys("", "the link's target"),
        ROWKEY,
        URL,
        Column("host", pa.string(), "Host of the target."),
        SEGMENT,
        Column("position", pa.int32(), "Place of the link in the page, from 0."),
        Column("anchor", pa.string(), "Anchor text."),
        Column("kind", pa.int8(), "Where the link was found.", labels=LinkKind),
        Column("nofollow", pa.bool_(), "rel=nofollow."),
        Column("ugc", pa.bool_(), "rel=ugc."),
        Column("sponsored", pa.bool_(), "rel=sponsored."),
        Column("modified_at", TIMESTAMP, "lastmod of a sitemap entry."),
        Column("change_interval_s", pa.int32(), "changefreq of a sitemap entry, in seconds."),
        Column("priority", pa.float32(), "priority of a sitemap entry."),
        Column("meta", META, "What plugins pass on along the link."),
    ),
)

COUNTED = Table(
    name="counted",
    doc="The links that `inlinks` counts, by the segment they were parsed in: what is taken back when a page changes.",
    kind=Kind.SEGMENT,
    key=("src_domain_fp", "src_url_fp", "domain_fp", "url_fp", "url"),
    order=(),
    columns=(
        *url_keys("src_", "the linking page"),
        *url_keys("", "the link's target"),
        Column("url", pa.string(), "The link's target.", Merge.KEY, nullable=False),
        ROWKEY,
        Column("host", pa.string(), "Host of the target."),
        SEGMENT,
    ),
)

FOUND = Table(
    name="found",
    doc="URLs that fetching itself came upon: sitemaps and feeds that robots.txt names.",
    kind=Kind.SEGMENT,
    key=("domain_fp", "url_fp"),
    order=("rowkey", "domain_fp", "url_fp"),
    columns=(
        *url_keys(),
        ROWKEY,
        URL,
        Column("host", pa.string(), "Host of the URL."),
        SEGMENT,
        Column("via", pa.string(), "The robots.txt that names it."),
        Column("kind", pa.int8(), "Feed or sitemap.", nullable=False, labels=PageKind),
    ),
)

SEGMENT_TABLES = (FETCHLIST, FETCH, FOUND, PARSE, TEXT, OUTLINKS, COUNTED)
