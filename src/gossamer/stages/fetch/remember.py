"""Between rounds: what the crawl knows of hosts and robots.txt goes to the processes, what they learned comes back."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import ibis
import pyarrow as pa
import pyarrow.compute as pc

from gossamer.stages.fetch.ledger import Home
from gossamer.stages.fetch.memory import STATE
from gossamer.storage.parquet import FileEntry, Target
from gossamer.tables.segment import FOUND
from gossamer.tables.spec import TIMESTAMP
from gossamer.tables.statuses import Outcome, PageKind
from gossamer.urls import keys
from gossamer.urls.domains import domains
from gossamer.urls.parse import resolve

if TYPE_CHECKING:
    import ibis.expr.types as ir

    from gossamer.runner import Run
    from gossamer.urls.chain import UrlChain

HOST_COLUMNS = (
    "host", "domain", "address", "crawl_delay_ms", "last_request_at", "not_before", "failures", "given_up_until",
)  # fmt: skip
ROBOTS_COLUMNS = ("origin", "body", "reachable", "error", "expires_at")
FEEDS = ("feed", "rss", "atom")  # in the name of a file that robots.txt calls a sitemap
GOOD = [outcome.value for outcome in (Outcome.SUCCESS, Outcome.NOT_MODIFIED)]
KEPT = ("address", "delay_ms", "crawl_delay_ms", "latency_ms", "not_before", "given_up_until")
COUNTED = ("requests", "successes", "errors", "bytes")
COUNTS = pa.schema([("host", pa.string()), *((name, pa.int64()) for name in COUNTED), ("asked_at", TIMESTAMP)])


def known(run: Run, home: Home, generation: int) -> tuple[list[FileEntry], list[FileEntry]]:
    """Files with what is known of the hosts of a batch and of their robots.txt, by partition."""
    fetchlist = run.table("fetchlist", segment=home.segment)
    domains = fetchlist.select("domain_fp", "partition").distinct().view()
    hosts = run.table("hosts")
    near = hosts.inner_join(domains, ["domain_fp"])
    near = near.select("partition", "host_fp", *HOST_COLUMNS).view()
    robots = run.table("robots")
    theirs = robots.inner_join(near.select("partition", "host_fp").distinct().view(), ["host_fp"])
    theirs = theirs.select("partition", *ROBOTS_COLUMNS)
    folder = f"{home.folder}/known-g{generation:03d}"
    return (
        _stored(run, near.select("partition", *HOST_COLUMNS), f"{folder}/hosts"),
        _stored(run, theirs, f"{folder}/robots"),
    )


def _stored(run: Run, rows: ir.Table, folder: str) -> list[FileEntry]:
    from gossamer.engine.base import canonical

    return run.crawl.engine.write(rows, Target(run.crawl.files, folder, canonical(rows), order=("partition",)))


def write_robots(run: Run, answers: ir.Table, segment: str) -> None:
    """What origins said last, and the sitemaps they name."""
    nth = ibis.row_number().over(group_by=["host_fp", "host_key", "origin"], order_by=ibis.desc("updated_at"))
    last = answers.mutate(nth=nth)
    last = last.filter(last.nth == 0).drop("nth").view()
    run.count(robots=run.write("robots", last, delta=True))
    chain = run.url_chain()
    named = run.crawl.engine.map_batches(
        last.select("origin", "sitemaps"), partial(found_rows, chain, segment), FOUND.schema
    )
    nth = ibis.row_number().over(group_by=["domain_fp", "url_fp"], order_by=["via", "url"])
    first = named.mutate(nth=nth)
    run.count(sitemaps=run.write("found", first.filter(first.nth == 0).drop("nth"), segment=segment))


def found_rows(chain: UrlChain, segment: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Origins and the sitemaps they name → rows of `found`, for those that our filters accept."""
    for batch in batches:
        pairs = [
            (resolve(f"{origin}/", [target])[0], f"{origin}/robots.txt")
            for origin, targets in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)
            for target in targets or ()
        ]
        urls = chain.check(pa.array([url for url, _ in pairs], pa.string()), "fetch").url
        kept = urls.is_valid().to_pylist()
        urls = urls.drop_null()
        via = [via for (_, via), keep in zip(pairs, kept, strict=True) if keep]
        columns = keys.url_columns(urls) | {
            "segment": pa.array([segment] * len(urls), pa.string()),
            "via": pa.array(via, pa.string()),
            "kind": pa.array([kind_of(url).value for url in urls.to_pylist()], pa.int8()),
        }
        yield pa.RecordBatch.from_arrays([columns[name] for name in FOUND.names], schema=FOUND.schema)


def kind_of(url: str) -> PageKind:
    """What robots.txt calls a sitemap may be a feed; its name tells."""
    name = url.partition("?")[0].rstrip("/").rpartition("/")[2].lower()
    return PageKind.FEED if any(word in name for word in FEEDS) and "sitemap" not in name else PageKind.SITEMAP


def write_hosts(run: Run, rows: ir.Table, states: pa.Table) -> None:
    """Counts of what was fetched, and the state of the hosts we talked to, before an interruption as well."""
    engine = run.crawl.engine
    columns = ("url", "outcome", "started_at", "length")
    counts = engine.map_batches(rows.select(*columns), counts_by_host, COUNTS)
    sums = {name: counts[name].sum().cast("int64") for name in COUNTED}
    totals = engine.collect(counts.group_by("host").agg(**sums, asked_at=counts.asked_at.max()))
    asked = totals.filter(pc.greater(totals.column("requests"), 0))
    rows = _hosts(asked, states.select(STATE.names), run)
    run.count(hosts=run.write("hosts", _with_past(run, rows), delta=True))


def _with_past(run: Run, rows: pa.Table) -> ir.Table:
    """Hosts that were asked before an interruption and not since keep what earlier rounds knew of them."""
    new = run.crawl.engine.values(rows)
    old = run.table("hosts", among=new.filter(new.delay_ms.isnull()).select("host_fp", "host_key").view())
    past = old.select("host_fp", "host_key", *(old[name].name(f"old_{name}") for name in KEPT)).view()
    joined = new.left_join(past, ["host_fp", "host_key"])
    kept = {name: ibis.coalesce(joined[name], joined[f"old_{name}"]) for name in KEPT}
    return joined.mutate(**kept).select(*new.columns)


def counts_by_host(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Fetch rows → counts of each host in a batch."""
    for batch in batches:
        rows = pa.table(
            {
                "host": keys.hosts(batch.column("url")),
                "requests": batch.column("started_at").is_valid().cast(pa.int64()),
                "successes": pc.is_in(batch.column("outcome"), pa.array(GOOD, pa.int8())).cast(pa.int64()),
                "errors": pc.equal(batch.column("outcome"), Outcome.FAIL.value).cast(pa.int64()),
                "bytes": batch.column("length").fill_null(0),
                "asked_at": batch.column("started_at"),
            }
        )
        grouped = rows.group_by("host").aggregate([*((name, "sum") for name in COUNTED), ("asked_at", "max")])
        given = [grouped.column("host"), *(grouped.column(f"{name}_sum") for name in COUNTED), grouped["asked_at_max"]]
        yield from pa.table(given, schema=COUNTS).to_batches()


def _hosts(totals: pa.Table, states: pa.Table, run: Run) -> pa.Table:
    """Rows of the table hosts."""
    states = states.sort_by([("host", "ascending"), ("last_request_at", "descending")])
    names = states.column("host").to_pylist()
    latest = [at for at, name in enumerate(names) if at == 0 or names[at - 1] != name]
    rows = totals.join(states.take(pa.array(latest, pa.int64())), "host", join_type="full outer")
    hosts = rows.column("host").combine_chunks()
    domain = domains(hosts)
    given = {name: rows.column(name) for name in rows.column_names} | {
        "host_fp": keys.fingerprints(hosts),
        "host_key": pa.array([keys.reverse_host(host) for host in hosts.to_pylist()], pa.string()),
        "domain_fp": keys.fingerprints(domain),
        "domain": domain,
        "last_request_at": pc.coalesce(rows.column("last_request_at"), rows.column("asked_at")),
        "failures": rows.column("failures").fill_null(0),
        **{name: rows.column(name).fill_null(0) for name in COUNTED},
        **{name: pa.array([run.clock.now] * len(hosts), TIMESTAMP) for name in ("updated_at", "first_seen")},
    }
    schema = run.tables["hosts"].schema
    return pa.table([given.get(f.name, pa.nulls(len(hosts), f.type)) for f in schema], schema=schema)


def clean(run: Run, home: Home) -> None:
    """Drop what is left of segments that have been published."""
    for files in {id(f): f for f in (home.files, home.spool)}.values():
        old = [path for path, _ in files.list("fetching") if _done(run, path)]
        files.delete(*old)


def _done(run: Run, path: str) -> bool:
    return "fetch" in run.snapshot.segments.get(path.split("/")[1], ())


def drop(home: Home) -> None:
    """Drop the parts of a segment: its tables have them now."""
    for files in {id(f): f for f in (home.files, home.spool)}.values():
        files.delete(*(path for path, _ in list(files.list(home.folder))))
