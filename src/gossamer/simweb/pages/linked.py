"""Pages that only links make: mazes, filters in every order, redirectors, results of searches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import quote, unquote

from gossamer.simweb.config import PageKind
from gossamer.simweb.pages.listings import Args, By, Listing, Range
from gossamer.simweb.sites.draw import key_of
from gossamer.simweb.sites.site import Site
from gossamer.simweb.sites.text import topic

# What quoting makes of each character of a URL; the same as quote(url, safe=""), which takes ten times as long.
QUOTED = {code: quote(chr(code), safe="") for code in range(128)}
PLAIN = "".join(map(chr, range(0x21, 0x7F)))  # what may stand in a header as it is
EVERYTHING, SECTIONS = Listing(), By("section")


class Maze(Range):
    """A trap: relative links that repeat segments, `depth` deep."""

    def read(self, site: Site, page: PageKind, fields: dict[str, str]) -> Args | None:
        segments = tuple(fields["maze"].strip("/").split("/"))
        known = {slug for _, slug in site.sections[:2]}
        return segments if known.issuperset(segments) else None

    def fields(self, site: Site, args: Args, moved: bool) -> dict[str, str]:
        return {"maze": "/".join(args)}

    def there(self, site: Site, page: PageKind, args: Args, moment: int) -> bool:
        return moment >= site.launch and len(args) <= page.depth

    def every(self, site: Site, page: PageKind, moment: int) -> Iterator[Args]:
        yield (site.sections[0][1],)

    def title(self, site: Site, args: Args) -> str:
        return " / ".join(map(unquote, args))


class Facets(Range):
    """A trap: a section filtered and sorted in every order of clicks; args are the section, then the choices as (name, value)."""

    def read(self, site: Site, page: PageKind, fields: dict[str, str]) -> Args | None:
        slugs = [slug for _, slug in site.sections]
        return (slugs.index(fields["section"]),) if fields["section"] in slugs else None

    def fields(self, site: Site, args: Args, moved: bool) -> dict[str, str]:
        return {"section": site.sections[args[0]][1]}

    def news(self, site: Site, args: Args, moment: int) -> int:
        return SECTIONS.news(site, (args[0], 1), moment)

    def comings(self, site: Site, args: Args, after: int, until: int) -> list[int]:
        return SECTIONS.comings(site, (args[0], 1), after, until)

    def every(self, site: Site, page: PageKind, moment: int) -> Iterator[Args]:
        return iter(())

    def items(self, site: Site, page: PageKind, args: Args, moment: int) -> Sequence[int]:
        whole = list(SECTIONS.items(site, page, (args[0], 1), moment))
        key = key_of(site.key, *map("=".join, sorted(args[1:])))
        return sorted(whole, key=lambda number: key_of(key, number))[: max(1, len(whole) >> len(args) - 1)]

    def title(self, site: Site, args: Args) -> str:
        return " · ".join([site.sections[args[0]][0], *(value for _, value in sorted(args[1:]))])


class Go(Range):
    """A redirector on the site's own host to anywhere; args are the URL it leads to."""

    def read(self, site: Site, page: PageKind, fields: dict[str, str]) -> Args | None:
        url = quote(unquote(fields["url"]), safe=PLAIN)
        return (url,) if url.startswith(("http://", "https://")) else None

    def fields(self, site: Site, args: Args, moved: bool) -> dict[str, str]:
        url = args[0]
        return {"url": url.translate(QUOTED) if url.isascii() else quote(url, safe="")}

    def every(self, site: Site, page: PageKind, moment: int) -> Iterator[Args]:
        return iter(())


class Search(Range):
    """Results for any word, of which some are linked; args are the word as the URL spells it."""

    def read(self, site: Site, page: PageKind, fields: dict[str, str]) -> Args | None:
        return (fields["q"][:80],)

    def fields(self, site: Site, args: Args, moved: bool) -> dict[str, str]:
        return {"q": args[0]}

    def news(self, site: Site, args: Args, moment: int) -> int:
        return EVERYTHING.news(site, (0, 1), moment)

    def comings(self, site: Site, args: Args, after: int, until: int) -> list[int]:
        return EVERYTHING.comings(site, (0, 1), after, until)

    def every(self, site: Site, page: PageKind, moment: int) -> Iterator[Args]:
        return iter(())

    def items(self, site: Site, page: PageKind, args: Args, moment: int) -> Sequence[int]:
        count = site.count(site.rebuilt(moment))
        chosen = {key_of(site.key, args[0], place) % count for place in range(10)} if count else set()
        return sorted(chosen, reverse=True)

    def words(self, site: Site) -> list[str]:
        """Words people look for."""
        return [quote(word) for word in topic(site.code, site.main_topic).words]

    def title(self, site: Site, args: Args) -> str:
        return f"{site.language.ui['search']}: {unquote(args[0])}"
