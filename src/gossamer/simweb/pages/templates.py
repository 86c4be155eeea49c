"""Path templates of page kinds: `/{section}/[?page={page}]` → URLs, and URLs → what they name.

What stands in brackets belongs to the second and later pages of a listing. Parameters that no template knows are ignored, as servers do: such
URLs are duplicates.
"""

from __future__ import annotations

import re
from functools import lru_cache
from operator import attrgetter

from gossamer.errors import SettingsError
from gossamer.simweb.sites.site import Item

DIGITS = {"year": r"\d{4}", "month": r"\d{2}", "day": r"\d{2}", "id": r"\d{1,15}", "page": r"[1-9]\d{0,8}"}
SEGMENTS = {"section", "tag", "author", "slug"}
ITEMS = {"id", "slug", "section", "year", "month", "day", "page"}
REST = {"url", "maze", "q"}
SPELLED = re.compile(r"[A-Za-z0-9/._~!$'()*+,;:@%?&=-]*")
FIELD = re.compile(r"\{(\w+)\}")


class Path:
    """One template: with a page number, or without."""

    __slots__ = ("fields", "form", "of_item", "pattern", "prefix", "query", "slashes", "template")

    def __init__(self, template: str) -> None:
        self.template = template
        self.fields = frozenset(FIELD.findall(template))
        unknown = self.fields - DIGITS.keys() - SEGMENTS - REST
        if unknown or not template.startswith("/"):
            raise SettingsError(
                f"path {template!r}: " + (f"no field {{{min(unknown)}}}" if unknown else "must begin with /")
            )
        self.form = FIELD.sub("%s", template.replace("%", "%%"))
        self.of_item = attrgetter(*FIELD.findall(template)) if self.fields and self.fields <= ITEMS else None
        if not SPELLED.fullmatch(FIELD.sub("", template)) or len(FIELD.findall(template)) != len(self.fields):
            raise SettingsError(f"path {template!r}: write it as URLs are, percent-encoded, each field once")
        path, _, query = template.partition("?")
        self.pattern = re.compile(_regex(path))
        self.prefix = path.partition("{")[0]
        self.slashes = -1 if self.fields & REST and "{" in path else path.count("/")
        self.query = tuple(
            (name, re.compile(_regex(value)))
            for name, _, value in (part.partition("=") for part in query.split("&") if part)
        )

    def fill(self, fields: dict[str, str]) -> str:
        """The URL's path and query."""
        return self.template.format_map(fields)

    def item(self, item: Item) -> str:
        """The path and query of an item's first page: what `fill` gives, in a third of the time."""
        assert self.of_item is not None
        return self.form % self.of_item(item)

    def match(self, path: str, query: dict[str, str]) -> dict[str, str] | None:
        """The fields of a URL, if it has this form."""
        if not path.startswith(self.prefix):
            return None
        found = self.pattern.fullmatch(path)
        if found is None:
            return None
        fields = found.groupdict()
        for name, pattern in self.query:
            value = query.get(name)
            matched = pattern.fullmatch(value) if value is not None else None
            if matched is None:
                return None
            fields |= matched.groupdict()
        return fields


@lru_cache(maxsize=1024)
def paths(template: str) -> tuple[Path, Path | None]:
    """The path of a page, and that of its second and later parts if it has some."""
    if "[" not in template:
        path = Path(template)
        return (path, path) if "page" in path.fields else (path, None)
    return Path(re.sub(r"\[.*?\]", "", template)), Path(template.replace("[", "").replace("]", ""))


def _regex(text: str) -> str:
    parts = FIELD.split(text)
    return "".join(
        re.escape(part) if place % 2 == 0 else f"(?P<{part}>{_field(part)})" for place, part in enumerate(parts)
    )


def _field(name: str) -> str:
    if name in DIGITS:
        return DIGITS[name]
    return r"[^/?]+" if name in SEGMENTS else r".+"
