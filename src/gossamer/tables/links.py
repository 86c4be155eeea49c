"""The link graph and what is computed from it: linkdb, edges, ranks; and clusters of equal documents."""

from __future__ import annotations

import pyarrow as pa

from gossamer.tables.crawldb import url_keys
from gossamer.tables.spec import TIMESTAMP, Column, Kind, Merge, Table
from gossamer.tables.statuses import ClusterKind, LinkKind

LINKDB = Table(
    name="linkdb",
    doc="For every URL the pages that link to it; mirrors each page's latest parse.",
    kind=Kind.KEYED,
    key=("domain_fp", "url_fp", "src_domain_fp", "src_url_fp"),
    order=("rowkey", "domain_fp", "url_fp", "src_domain_fp", "src_url_fp"),
    shard_by="url_fp",
    version_by="updated_at",
    columns=(
        *url_keys("", "the link's target"),
        Column("rowkey", pa.string(), "Row key of the target.", Merge.KEEP, nullable=False),
        Column("url", pa.string(), "The target.", Merge.KEEP, nullable=False),
        *url_keys("src_", "the linking page"),
        Column("src_url", pa.string(), "The linking page.", Merge.KEEP, nullable=False),
        Column("updated_at", TIMESTAMP, "Fetch time of the parse this link comes from.", Merge.MAX, measured=True),
        Column("anchor", pa.string(), "Anchor text."),
        Column("kind", pa.int8(), "Where the link was found.", labels=LinkKind),
        Column("nofollow", pa.bool_(), "rel=nofollow, ugc or sponsored."),
        Column("internal", pa.bool_(), "Both ends are on one host."),
        Column("score", pa.float64(), "Score of the linking page, by which the best are kept."),
    ),
)

EDGES = Table(
    name="edges",
    doc="Links counted between hosts and between registered domains.",
    kind=Kind.WHOLE,
    key=("level", "src", "dst"),
    order=("level", "src", "dst"),
    columns=(
        Column("level", pa.string(), "`host` or `domain`.", Merge.KEY, nullable=False),
        Column("src", pa.string(), "Linking host or domain, labels reversed.", Merge.KEY, nullable=False),
        Column("dst", pa.string(), "Linked host or domain, labels reversed.", Merge.KEY, nullable=False),
        Column("links", pa.int64(), "Links from pages of one to pages of the other.", nullable=False),
    ),
)

RANKS = Table(
    name="ranks",
    doc="PageRank of pages, hosts and domains; harmonic centrality of hosts.",
    kind=Kind.WHOLE,
    key=("level", "domain_fp", "node_fp"),
    order=("level", "node", "domain_fp", "node_fp"),
    shard_by="node_fp",
    columns=(
        Column("level", pa.string(), "`page`, `host` or `domain`.", Merge.KEY, nullable=False),
        Column("domain_fp", pa.int64(), "Fingerprint of the registered domain.", Merge.KEY, nullable=False),
        Column("node_fp", pa.int64(), "Fingerprint of the URL, host or domain.", Merge.KEY, nullable=False),
        Column("node", pa.string(), "Row key of a page; host or domain with labels reversed.", nullable=False),
        Column("rank", pa.float64(), "PageRank; sums to 1 within a level.", nullable=False),
        Column("step", pa.int16(), "Log step of the rank."),
        Column("harmonic", pa.float64(), "Harmonic centrality, for hosts."),
    ),
)

CLUSTERS = Table(
    name="clusters",
    doc="Documents that are the same or nearly the same, and which of them stands for the rest.",
    kind=Kind.WHOLE,
    key=("kind", "domain_fp", "url_fp"),
    order=("cluster", "kind", "domain_fp", "url_fp"),
    shard_by="cluster",
    columns=(
        Column("cluster", pa.int64(), "Id of the cluster: url_fp of its smallest member.", nullable=False),
        Column("kind", pa.int8(), "Exact or near.", Merge.KEY, nullable=False, labels=ClusterKind),
        *url_keys(),
        Column("url", pa.string(), "The document.", nullable=False),
        Column("winner", pa.bool_(), "This one stands for the cluster.", nullable=False),
        Column("distance", pa.int8(), "Differing SimHash bits to the winner."),
        Column("evidence", pa.string(), "Why it is an alias: redirect, canonical, www, parameters, domain."),
    ),
)
