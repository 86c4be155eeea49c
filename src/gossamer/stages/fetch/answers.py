"""Answers → their row and their archive record, as far as these follow from the answer alone."""

from __future__ import annotations

from typing import Literal

from gossamer.stages.fetch.outcomes import Headers, Judgement
from gossamer.stages.fetch.protocols import Response
from gossamer.stages.fetch.rows import Row
from gossamer.stages.fetch.visits import Visit
from gossamer.storage.warc import Exchange

Revisit = Literal["identical", "not-modified"] | None


def row_of(visit: Visit, response: Response, headers: Headers, judged: Judgement, at: float) -> Row:
    """The row of a visit that got a response, or none."""
    answered = response.code > 0
    return Row(
        visit.url,
        judged.outcome,
        at,
        http_code=response.code or None,
        started_at=visit.started or None,
        latency_ms=int(response.latency * 1000) if answered else None,
        retry_after_s=judged.retry_after,
        content_type=headers.type,
        length=len(response.body) if answered else None,
        truncated_reason=response.truncated,
        etag=headers.etag,
        last_modified=headers.last_modified,
        ip=response.ip if answered else None,
        protocol=response.protocol or None,
        tls=visit.tls or response.tls,
        error=judged.error,
        x_robots_tag=headers.robots,
    )


def exchange_of(visit: Visit, response: Response, error: str | None, at: float) -> Exchange:
    """The record of a visit; what there is to say about it besides goes into its metadata."""
    metadata = {}
    if visit.via:
        metadata["via"] = visit.via
    if error and response.truncated:
        metadata["error"] = error
    if visit.tls:
        metadata["tls"] = visit.tls
    return Exchange(
        visit.url,
        at,
        response.ip,
        response.protocol,
        response.request_head,
        response.head,
        response.body,
        response.truncated,
        metadata=metadata,
    )
