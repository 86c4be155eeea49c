"""Links as relations: which of a page's outlinks count, which counted ones are taken back, what their targets gain.

A link counts once, from one page to another, for as long as the page's latest parse has it. `counted` remembers the
links behind `inlinks`, so a page that is fetched or parsed again changes the counts by the difference only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ibis

from gossamer.tables.statuses import LinkKind, PageKind, Status

if TYPE_CHECKING:
    from datetime import datetime

    import ibis.expr.types as ir

    from gossamer.settings import LinkSettings, ScheduleSettings

SRC = ("src_domain_fp", "src_url_fp")
DST = ("domain_fp", "url_fp", "url")
FROM_PAGES = [kind.value for kind in (LinkKind.ANCHOR, LinkKind.AREA, LinkKind.LINK, LinkKind.FRAME, LinkKind.FORM)]
REASON = "reason"
COUNTED, ENTERED = "counted", "entered"  # counts as an inlink; only makes its target known
NOT_CURRENT = "not the page's latest parse"
NOFOLLOW, SELF = "nofollow", "link to itself"
BEYOND, TOO_MANY_NEW = "beyond links.max_per_page", "beyond links.max_new_per_page"
TARGET_COLUMNS = (
    "url", "host", "status", "inlinks", "cash", "depth", "next_fetch", "first_seen", "interval_s", "failures",
    "linked_at", "unlinked_at", "via", "kind",
)  # fmt: skip


def sources(pages: ir.Table) -> ir.Table:
    """Pages whose links are counted anew, named as the source of a link."""
    recounted = pages.filter(pages.recount & pages.parsed.notnull())
    return recounted.select(
        src_domain_fp=recounted.domain_fp,
        src_url_fp=recounted.url_fp,
        src=recounted.url,
        src_segment=recounted.parsed,
        src_depth=recounted.depth,
        spend=recounted.spend,
    )


def classified(outlinks: ir.Table, pages: ir.Table, settings: LinkSettings) -> ir.Table:
    """Every outlink with what becomes of it, caps aside."""
    own = sources(pages).view()
    joined = outlinks.left_join(own, [*((k, k) for k in SRC), ("segment", "src_segment")])
    marked = joined.nofollow.fill_null(False) | joined.ugc.fill_null(False) | joined.sponsored.fill_null(False)
    if settings.follow_nofollow:
        marked = ibis.literal(False)
    to_itself = (joined.src_domain_fp == joined.domain_fp) & (joined.src_url_fp == joined.url_fp)
    reason = ibis.cases(
        (joined.src_segment.isnull(), NOT_CURRENT),
        (to_itself, SELF),
        (marked, NOFOLLOW),
        (joined.kind.isnull() | joined.kind.isin(FROM_PAGES), COUNTED),
        else_=ENTERED,
    )
    names = ("domain_fp", "url_fp", "rowkey", "url", "host", "segment", "position", "change_interval_s")
    return joined.select(*SRC, "src", "src_depth", *names, reason.name(REASON)).view()


def capped(links: ir.Table, most: int) -> ir.Table:
    """Links beyond the first `most` of a page are left out, with their reason."""
    nth = ibis.row_number().over(group_by=[*SRC, "segment", _kept(links)], order_by=["position", *DST])
    numbered = links.mutate(nth=nth)
    beyond = _kept(numbered) & (numbered.nth >= most)
    return numbered.mutate(reason=ibis.ifelse(beyond, BEYOND, numbered[REASON])).drop("nth").view()


def capped_news(links: ir.Table, known: ir.Table, most: int) -> ir.Table:
    """Links to URLs nobody knew, beyond the first `most` of a page, are left out."""
    seen = known.select(*("domain_fp", "url_fp", "rowkey"), seen=ibis.literal(True)).view()
    joined = links.left_join(seen, [(k, k) for k in ("domain_fp", "url_fp", "rowkey")])
    joined = joined.select(*links.columns, fresh=joined.seen.isnull()).view()
    fresh = _kept(joined) & joined.fresh
    nth = ibis.row_number().over(group_by=[*SRC, "segment", fresh], order_by=["position", *DST])
    numbered = joined.mutate(nth=nth, fresh=fresh)
    beyond = numbered.fresh & (numbered.nth >= most)
    return numbered.mutate(reason=ibis.ifelse(beyond, TOO_MANY_NEW, numbered[REASON])).drop("nth", "fresh").view()


def _kept(links: ir.Table) -> ir.BooleanValue:
    return links[REASON].isin([COUNTED, ENTERED])


def per_page(links: ir.Table) -> ir.Table:
    """How many links of each page are kept."""
    kept = links.filter(_kept(links))
    return kept.group_by(*SRC, "segment").agg(links=kept.count())


def reasons(links: ir.Table) -> ir.Table:
    """How many links met which fate."""
    return links.group_by(REASON).agg(links=links.count())


def taken_back(counted: ir.Table, pages: ir.Table) -> ir.Table:
    """Links counted before for pages whose links are counted anew or that have none any more."""
    moved = pages.filter(pages.old_parsed.notnull() & pages.recount)
    old = moved.select(src_domain_fp=moved.domain_fp, src_url_fp=moved.url_fp, old_parsed=moved.old_parsed).view()
    joined = counted.inner_join(old, [*((k, k) for k in SRC), ("segment", "old_parsed")])
    return joined.select(*SRC, *DST, "rowkey", "host").view()


def shares(counted: ir.Table, pages: ir.Table) -> ir.Table:
    """What each link of a page gets of the page's cash, and what the page has spent then."""
    per = counted.group_by(*SRC).agg(links=counted.count()).view()
    own = sources(pages).view()
    joined = per.inner_join(own, [(k, k) for k in SRC])
    share = (joined.spend / joined.links).floor().cast("int64")
    share = ibis.ifelse(joined.spend > 0, share, 0).cast("int64")
    return joined.select(*SRC, "src", "src_depth", share=share, spent=(share * joined.links).cast("int64")).view()


def gains(counted: ir.Table, old: ir.Table | None, given: ir.Table) -> ir.Table:
    """What each counted link gives to its target: an inlink if it is new, its share of cash, a depth, a referrer."""
    joined = counted.inner_join(given, [(k, k) for k in SRC])
    rows = joined.select(
        *SRC, *DST, "rowkey", "host", "share", via=joined.src, depth=(joined.src_depth + 1).cast("int16")
    ).view()
    if old is None:
        return rows.mutate(inlinks=ibis.literal(1, "int32")).drop(*SRC)
    before = old.select(*SRC, *DST, had=ibis.literal(True)).view()
    matched = rows.left_join(before, [(k, k) for k in (*SRC, *DST)])
    return matched.select(
        *DST, "rowkey", "host", "share", "via", "depth",
        inlinks=ibis.ifelse(matched.had.isnull(), 1, 0).cast("int32"),
    ).view()  # fmt: skip


def losses(counted: ir.Table, old: ir.Table) -> ir.Table:
    """Links that were counted and are no more."""
    rows = old.anti_join(counted.select(*SRC, *DST).view(), [*SRC, *DST]).view()
    return rows.select(*DST, "rowkey", "host", inlinks=ibis.literal(-1, "int32"))


def entries(links: ir.Table) -> ir.Table:
    """Targets that links make known without counting, with what sitemaps say of theirs."""
    kept = links.filter(links[REASON] == ENTERED)
    return kept.select(
        *DST, "rowkey", "host", via=kept.src, depth=(kept.src_depth + 1).cast("int16"), told=kept.change_interval_s
    )


def named(found: ir.Table) -> ir.Table:
    """Sitemaps and feeds that robots.txt names: one link away from a seed at least, as nobody knows from where."""
    return found.select(*DST, "rowkey", "host", "via", "kind", depth=ibis.literal(1, "int16"))


def led_to(pages: ir.Table) -> ir.Table:
    """Targets of redirects and accepted canonicals: as deep as the page that leads there."""
    rows = pages.filter(pages.t_url.notnull() & pages.changed)
    return rows.select(
        domain_fp=rows.t_domain_fp,
        url_fp=rows.t_url_fp,
        url=rows.t_url,
        rowkey=rows.t_rowkey,
        host=rows.t_host,
        via=rows.url,
        depth=rows.depth,
    )


def targets(parts: list[ir.Table], now: datetime, schedule: ScheduleSettings) -> ir.Table:
    """One row per target: what it gains, and the state it has if nobody knew it."""
    kinds: dict[str, str] = {"inlinks": "int32", "share": "int64", "via": "string", "depth": "int16", "told": "int32"}
    kinds["kind"] = "int8"
    alike = [
        part.select(
            *DST, "rowkey", "host",
            **{name: part[name] if name in part.columns else ibis.null(kind) for name, kind in kinds.items()},
        )
        for part in parts
    ]  # fmt: skip
    rows = ibis.union(*alike) if len(alike) > 1 else alike[0]
    grouped = rows.group_by(*DST).agg(
        rowkey=rows.rowkey.arbitrary(),  # like the host it follows from the URL
        host=rows.host.arbitrary(),
        inlinks=rows.inlinks.sum().fill_null(0).cast("int32"),
        cash=rows.share.sum().fill_null(0).cast("int64"),
        depth=rows.depth.min(),
        via=rows.via.min(),
        told=rows.told.min(),
        gained=rows.inlinks.max(),
        lost=rows.inlinks.min(),
        kind=rows.kind.max(),
    )
    return grouped.select("domain_fp", "url_fp", "rowkey", **_fresh(grouped, now, schedule))


def _fresh(rows: ir.Table, now: datetime, schedule: ScheduleSettings) -> dict[str, Any]:
    """The columns of a target's row; those of state hold only for URLs the crawldb does not have."""
    moment = ibis.literal(now, "timestamp('UTC', 6)")
    told = rows.told.clip(schedule.min_interval_s, schedule.max_interval_s)
    nothing = ibis.null("timestamp('UTC', 6)")
    return {
        "url": rows.url,
        "host": rows.host,
        "status": ibis.literal(Status.UNFETCHED.value, "int8"),
        "inlinks": rows.inlinks,
        "cash": rows.cash,
        "depth": rows.depth,
        "next_fetch": moment,
        "first_seen": moment,
        "interval_s": ibis.coalesce(told, schedule.interval_s).cast("int32"),
        "failures": ibis.literal(0, "int16"),
        "linked_at": ibis.ifelse(rows.gained > 0, moment, nothing),
        "unlinked_at": ibis.ifelse(rows.lost < 0, moment, nothing),
        "via": rows.via,
        "kind": ibis.coalesce(rows.kind, PageKind.PAGE.value).cast("int8"),
    }
