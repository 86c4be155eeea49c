"""The head of a page: charset, title, description, canonical address, feed, styles."""

from __future__ import annotations

from gossamer.simweb.pages.body import teaser
from gossamer.simweb.pages.find import address
from gossamer.simweb.pages.view import View
from gossamer.simweb.sites.site import Site

WRONG = {"utf-8": "iso-8859-1"}  # what is declared where the declaration is wrong; a legacy charset is called UTF-8


def declared(site: Site) -> str:
    """The charset that the site claims."""
    if site.manner.declared == "wrong":
        return WRONG.get(site.charset, "utf-8")
    return site.charset.replace("_", "-")


def head_links(here: View) -> list[tuple[str, str]]:
    """Links of the head: (relation, path)."""
    links = []
    if here.site.manner.canonical and here.found.own:
        links.append(("canonical", here.found.own))
    return links + here.site.keep(("feeds", here.site.era(here.moment)), lambda: _feeds(here))


def _feeds(here: View) -> list[tuple[str, str]]:
    return [
        ("alternate", address(here.site, page, (0, 1), here.moment))
        for page in here.site.kind.pages
        if page.format in ("rss", "atom")
    ]


def head(here: View, title: str) -> str:
    """From the doctype to the end of the head."""
    site, page = here.site, here.page
    doctype = (
        '<!DOCTYPE html PUBLIC "-//W3C//DTD HTML 4.01 Transitional//EN" "http://www.w3.org/TR/html4/loose.dtd">'
        if site.skin == 2
        else "<!DOCTYPE html>"
    )
    parts = [f'{doctype}\n<html lang="{site.code}" dir="{site.language.direction}">\n<head>\n']
    if site.manner.declared in ("both", "meta", "wrong"):
        form = (
            '<meta http-equiv="Content-Type" content="text/html; charset={}">\n'
            if site.skin == 2
            else '<meta charset="{}">\n'
        )
        parts.append(form.format(declared(site)))
    if site.manner.hrefs == "base":
        parts.append(f'<base href="{site.origin}/">\n')
    parts.append(f"<title>{title}</title>\n" if title == site.name else f"<title>{title} | {site.name}</title>\n")
    if page.noindex:
        parts.append('<meta name="robots" content="noindex">\n')
    if here.item is not None:
        parts.append(
            f'<meta name="description" content="{teaser(site, here.item)}">\n<meta property="og:type" content="article">\n'
        )
    for relation, path in head_links(here):
        kind = ' type="application/rss+xml"' if relation == "alternate" else ""
        parts.append(f'<link rel="{relation}"{kind} href="{site.origin}{path.replace("&", "&amp;")}">\n')
    parts.append(site.keep("head", lambda: _fixed(site)))
    return "".join(parts)


def _fixed(site: Site) -> str:
    """What the head of every page of the site has."""
    hue = site.key % 360
    return (
        f'<meta name="generator" content="Press {site.key % 7 + 1}.{site.key % 11}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<style>\n"
        f"body {{ margin: 0; font-family: Georgia, serif; color: #222; background: hsl({hue}, 20%, 97%); line-height: 1.5; }}\n"
        f"a {{ color: hsl({hue}, 60%, 35%); text-decoration: none; }} a:hover {{ text-decoration: underline; }}\n"
        "h1, h2, h3, h5 { font-family: Helvetica, Arial, sans-serif; line-height: 1.2; margin: 0.8em 0 0.4em; }\n"
        "ul { padding-left: 1.2em; } nav ul, .menu, .navbar-nav { list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: 0.8em; }\n"
        f"header, #header {{ border-bottom: 3px solid hsl({hue}, 60%, 45%); padding: 0.5em 1em; }}\n"
        "aside, .col-side { font-size: 0.9em; } .byline { color: #777; font-size: 0.85em; } .label { font-weight: bold; margin-right: 0.5em; }\n"
        "table.facts th { text-align: left; padding-right: 1em; } pre { background: #f4f4f4; padding: 0.8em; overflow: auto; }\n"
        "footer, #footer { margin-top: 2em; padding: 1em; font-size: 0.8em; color: #888; } figure { margin: 1em 0; } img { max-width: 100%; }\n"
        "</style>\n</head>\n"
    )
