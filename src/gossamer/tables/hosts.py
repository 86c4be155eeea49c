"""hosts and robots: what is remembered between rounds to stay polite."""

from __future__ import annotations

import pyarrow as pa

from gossamer.tables.spec import META, TIMESTAMP, Column, Kind, Merge, Table

HOST_KEY = (
    Column("host_fp", pa.int64(), "Fingerprint of the host.", Merge.KEY, nullable=False),
    Column(
        "host_key", pa.string(), "The host with its labels reversed (`org.apache.nutch`).", Merge.KEY, nullable=False
    ),
)

HOSTS = Table(
    name="hosts",
    doc="One row per host: politeness state, address, counts and errors.",
    kind=Kind.KEYED,
    key=("host_fp", "host_key"),
    order=("host_key", "host_fp"),
    shard_by="host_fp",
    version_by="updated_at",
    columns=(
        *HOST_KEY,
        Column("host", pa.string(), "The host, as an A-label.", Merge.KEEP, nullable=False),
        Column("domain_fp", pa.int64(), "Fingerprint of the registered domain.", Merge.KEEP),
        Column("domain", pa.string(), "The registered domain, as an A-label.", Merge.KEEP),
        Column("updated_at", TIMESTAMP, "When this row was decided; the newer row wins.", Merge.MAX),
        Column("address", pa.string(), "Address last connected to.", measured=True),
        Column("address_until", TIMESTAMP, "Until when the address may be reused.", measured=True),
        Column("delay_ms", pa.int32(), "Delay between requests in force.", measured=True),
        Column("crawl_delay_ms", pa.int32(), "Crawl-delay of robots.txt."),
        Column("last_request_at", TIMESTAMP, "Last request; the delay counts from here.", measured=True),
        Column("not_before", TIMESTAMP, "Retry-After or back-off: no request earlier.", measured=True),
        Column("latency_ms", pa.int32(), "Smoothed time to the first byte.", measured=True),
        Column("failures", pa.int16(), "Failures in a row."),
        Column("given_up_until", TIMESTAMP, "The host is left alone until then.", measured=True),
        Column("requests", pa.int64(), "Requests made.", Merge.SUM),
        Column("successes", pa.int64(), "Requests that gave a page.", Merge.SUM),
        Column("errors", pa.int64(), "Requests that failed.", Merge.SUM),
        Column("bytes", pa.int64(), "Body bytes received.", Merge.SUM, measured=True),
        Column("first_seen", TIMESTAMP, "When the host entered the crawl.", Merge.MIN),
        Column("last_error", pa.string(), "Class of the last error."),
        Column("meta", META, "Free metadata."),
    ),
)

ROBOTS = Table(
    name="robots",
    doc="One row per origin (scheme, host, port): its robots.txt and how long it holds.",
    kind=Kind.KEYED,
    key=("host_fp", "host_key", "origin"),
    order=("host_key", "origin", "host_fp"),
    shard_by="host_fp",
    version_by="updated_at",
    version=2,
    migrations={1: lambda rows: rows},  # the place of its record came with version 2
    columns=(
        *HOST_KEY,
        Column("origin", pa.string(), "`https://host:port`, default ports left out.", Merge.KEY, nullable=False),
        Column("updated_at", TIMESTAMP, "When it was answered; the newer row wins.", Merge.MAX, measured=True),
        Column("expires_at", TIMESTAMP, "Fetch it again after this, at most 24 h.", measured=True),
        Column("http_code", pa.int16(), "Status code, NULL when unreachable."),
        Column("reachable", pa.bool_(), "False: everything is disallowed for now."),
        Column("body", pa.binary(), "The robots.txt as parsed, cut at a line."),
        Column("sitemaps", pa.list_(pa.string()), "Sitemaps it names."),
        Column("error", pa.string(), "Why it was unreachable."),
        Column("warc_file", pa.string(), "Name of the WARC file that holds the answer.", measured=True),
        Column("warc_offset", pa.int64(), "Offset of the response record.", measured=True),
        Column("warc_length", pa.int64(), "Compressed length of the record.", measured=True),
    ),
)
