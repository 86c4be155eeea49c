"""The normalisers Gossamer brings; parsing by the WHATWG standard comes before them all."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from gossamer.plugins.hookspecs import hookimpl
from gossamer.rules.ruleset import RuleSet
from gossamer.urls import rewrite
from gossamer.urls.keys import hosts
from gossamer.urls.steps import Normalizer


def encoding(urls: pa.Array, _rules: RuleSet, _stage: str) -> pa.Array:
    """Percent-encoding in one spelling."""
    return rewrite.rewrite(urls, rewrite.ENCODED, rewrite.decode_unreserved)


def sessions(urls: pa.Array, rules: RuleSet, _stage: str) -> pa.Array:
    """No session ids."""
    known = rewrite.parameters(rules.session_parameters, sessions=True)
    return urls if known is None else rewrite.rewrite(urls, known.mask, known.strip)


def tracking(urls: pa.Array, rules: RuleSet, _stage: str) -> pa.Array:
    """No tracking parameters."""
    known = rewrite.parameters(rules.tracking_parameters)
    return urls if known is None else rewrite.rewrite(urls, known.mask, known.strip)


def query(urls: pa.Array, _rules: RuleSet, _stage: str) -> pa.Array:
    """No empty parameters."""
    return rewrite.rewrite(urls, rewrite.EMPTY_PARAMETER, rewrite.clean_query)


def index(urls: pa.Array, _rules: RuleSet, _stage: str) -> pa.Array:
    """No index pages."""
    return rewrite.rewrite(urls, rewrite.INDEX_PAGE, rewrite.drop_index_page)


def slashes(urls: pa.Array, _rules: RuleSet, _stage: str) -> pa.Array:
    """No empty segments."""
    return rewrite.rewrite(urls, rewrite.DOUBLE_SLASH, rewrite.single_slashes)


def www(urls: pa.Array, rules: RuleSet, _stage: str) -> pa.Array:
    """Each domain with or without `www.`, as it is known to be canonical there."""
    wrong = rewrite.wrong_hosts(rules.www)
    if not wrong:
        return urls
    mask = pc.is_in(hosts(urls), pa.array(wrong, pa.string()))
    return rewrite.rewrite_where(urls, mask, lambda url: rewrite.rename_host(url, wrong))


NORMALIZERS = tuple(Normalizer(run.__name__, run) for run in (encoding, sessions, tracking, query, index, slashes, www))


@hookimpl
def gossamer_normalizers() -> list[Normalizer]:
    """All of them."""
    return list(NORMALIZERS)
