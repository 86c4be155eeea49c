"""Blocks → HTML, in one of four skins: plain elements, nested boxes, a table layout of old, a grid of rows and columns.

Strings are joined, not parsed: a page of 15 KB is some hundred pieces. Texts hold no character that HTML minds (text.py sees to it), and URLs are
percent-encoded, so only & is escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from gossamer.simweb.pages.find import Found
from gossamer.simweb.pages.head import head
from gossamer.simweb.pages.view import Block, Link, title, view
from gossamer.simweb.sites.site import Site

REGIONS = {
    "menu": "header",
    "form": "header",
    "crumbs": "header",
    "aside": "side",
    "archive": "side",
    "footer": "footer",
}


class Skin(NamedTuple):
    """The markup around regions, lists and their entries; {} takes what is inside."""

    page: str
    menu: str
    entry: str
    story: str
    side: str
    side_entry: str
    paragraph: str
    heading: str


SKINS = (
    Skin(
        '<header role="banner">\n{header}</header>\n<main id="content">\n<article>\n{main}</article>\n</main>\n<aside>\n{side}</aside>\n<footer>\n{footer}</footer>\n',
        '<nav aria-label="{heading}">\n<ul>\n{inside}</ul>\n</nav>\n',
        '<li><a href="{url}"{more}>{text}</a></li>\n',
        '<section class="entry">\n<h2><a href="{url}"{more}>{text}</a></h2>\n<p>{story}</p>\n</section>\n',
        '<section class="box">\n<h2>{heading}</h2>\n<ul>\n{inside}</ul>\n</section>\n',
        '<li><a href="{url}"{more}>{text}</a></li>\n',
        "<p>{}</p>\n",
        "<h1>{}</h1>\n",
    ),
    Skin(
        '<div id="wrapper"><div class="page-outer"><div class="page-inner">\n<div id="header"><div class="container">\n{header}</div></div>\n<div id="body" class="clearfix">\n<div class="col-main"><div class="col-inner"><div class="post hentry">\n{main}</div></div></div>\n<div class="col-side"><div class="col-inner">\n{side}</div></div>\n</div>\n<div id="footer"><div class="container">\n{footer}</div></div>\n</div></div></div>\n',
        '<div class="nav-wrap"><div class="nav" title="{heading}"><ul class="menu">\n{inside}</ul></div></div>\n',
        '<li class="menu-item"><a class="menu-link" href="{url}"{more}><span>{text}</span></a></li>\n',
        '<div class="teaser"><div class="teaser-inner"><div class="teaser-title"><h3><a href="{url}"{more}>{text}</a></h3></div><div class="teaser-text"><p>{story}</p></div></div></div>\n',
        '<div class="widget"><div class="widget-title"><span>{heading}</span></div><div class="widget-body"><ul>\n{inside}</ul></div></div>\n',
        '<li class="widget-item"><div class="item-text"><a href="{url}"{more}>{text}</a></div></li>\n',
        '<p class="body-text">{}</p>\n',
        '<div class="title-wrap"><h1 class="entry-title">{}</h1></div>\n',
    ),
    Skin(
        '<table width="100%" border="0" cellpadding="4" cellspacing="0"><tr><td colspan="2" bgcolor="#dde">\n{header}</td></tr>\n<tr><td valign="top" width="75%">\n{main}</td><td valign="top">\n{side}</td></tr>\n<tr><td colspan="2" align="center"><font size="1">\n{footer}</font></td></tr></table>\n',
        '<table class="nav" summary="{heading}"><tr>\n{inside}</tr></table>\n',
        '<td nowrap><b><a href="{url}"{more}>{text}</a></b></td>\n',
        '<table class="row" width="100%"><tr><td><b><a href="{url}"{more}>{text}</a></b><br>{story}</td></tr></table>\n',
        '<table class="box" width="100%"><tr><th>{heading}</th></tr>\n{inside}</table>\n',
        '<tr><td><font size="2">&#8226; <a href="{url}"{more}>{text}</a></font></td></tr>\n',
        "<p>{}\n",
        "<h1><font color=navy>{}</font></h1>\n",
    ),
    Skin(
        '<div class="app"><header class="container-fluid"><div class="row"><div class="col-12">\n{header}</div></div></header>\n<main class="container"><div class="row">\n<div class="col-lg-8 col-md-12"><article class="card"><div class="card-body">\n{main}</div></article></div>\n<aside class="col-lg-4 d-none d-lg-block"><div class="sticky-top">\n{side}</div></aside>\n</div></main>\n<footer class="container-fluid bg-dark"><div class="row"><div class="col">\n{footer}</div></div></footer></div>\n',
        '<nav class="navbar navbar-expand-lg" aria-label="{heading}"><div class="collapse navbar-collapse"><ul class="navbar-nav mr-auto">\n{inside}</ul></div></nav>\n',
        '<li class="nav-item"><a class="nav-link" href="{url}"{more}>{text}</a></li>\n',
        '<div class="row mb-3"><div class="col"><div class="card h-100"><div class="card-body"><h5 class="card-title"><a class="stretched-link" href="{url}"{more}>{text}</a></h5><p class="card-text text-muted">{story}</p></div></div></div></div>\n',
        '<div class="card mb-4"><h5 class="card-header">{heading}</h5><div class="card-body"><ul class="list-unstyled mb-0">\n{inside}</ul></div></div>\n',
        '<li class="mb-2"><a href="{url}"{more}>{text}</a></li>\n',
        '<p class="lead-6">{}</p>\n',
        '<h1 class="mt-4 display-5">{}</h1>\n',
    ),
)
NOFOLLOW = ' rel="nofollow"'


def render(found: Found, blocks: Sequence[Block]) -> str:
    """The whole page."""
    here = view(found)
    site = here.site
    skin = SKINS[site.skin]
    regions: dict[str, list[str]] = {"header": [], "main": [], "side": [], "footer": []}
    for block in blocks:
        regions[REGIONS.get(block.role, "main")].append(_block(site, skin, block))
    inside = skin.page.format_map({name: "".join(parts) for name, parts in regions.items()})
    top = head(here, title(here))
    return (
        f'{top}<body class="{here.page.name}">\n{inside}{site.keep("script", lambda: script(site))}</body>\n</html>\n'
    )


def excuse(site: Site) -> str:
    """The page that says that there is no such page."""
    ui, skin = site.language.ui, SKINS[site.skin]
    home = f'<p><a href="/">{ui["home"]}</a></p>\n'
    main = skin.heading.format(ui["not_found"]) + skin.paragraph.format(ui["sorry"]) + home
    inside = skin.page.format(header="", main=main, side="", footer=ui["all_rights"])
    meta = f'<meta charset="{site.charset}">' if site.manner.declared in ("both", "meta") else ""
    return f'<!DOCTYPE html>\n<html lang="{site.code}"><head>{meta}<title>{ui["not_found"]}</title></head>\n<body>\n{inside}</body>\n</html>\n'


def href(site: Site, url: str) -> str:
    """A link as the site writes it."""
    if "&" in url:
        url = url.replace("&", "&amp;")
    if not url.startswith("/"):
        return url
    return PREFIXES[site.manner.hrefs](site, url)


PREFIXES: dict[str, Callable[[Site, str], str]] = {
    "path": lambda _, url: url,
    "absolute": lambda site, url: site.origin + url,
    "scheme": lambda site, url: site.origin.partition(":")[2] + url,
    "base": lambda _, url: url[1:] or "./",
}


def script(site: Site) -> str:
    """What every page of the site ends with."""
    return (
        "<script>\n(function (w, d) {\n  var q = w.metrics = w.metrics || [];\n"
        f"  q.push(['site', '{site.key % 99991}'], ['view', d.location.pathname]);\n"
        "  d.addEventListener('DOMContentLoaded', function () {\n"
        "    var open = d.querySelector('.menu-toggle');\n    if (open) { open.onclick = function () { d.body.classList.toggle('menu-open'); }; }\n"
        "    Array.prototype.forEach.call(d.querySelectorAll('img[data-src]'), function (image) { image.src = image.getAttribute('data-src'); });\n"
        "  });\n})(window, document);\n</script>\n<noscript><!-- counted without scripts --></noscript>\n"
    )


def _block(site: Site, skin: Skin, block: Block) -> str:
    write = WRITERS[block.role]
    if block.fixed:
        return site.keep(("html", block.fixed), lambda: write(site, skin, block))
    return write(site, skin, block)


def _entries(site: Site, form: str, links: Sequence[Link], more: str = "") -> str:
    """The links, each in its entry's markup."""
    before, between, after = _pieces(form, more)
    if site.manner.hrefs == "path":
        return "".join([f"{before}{url.replace('&', '&amp;')}{between}{text}{after}" for url, text in links])
    return "".join([f"{before}{href(site, url)}{between}{text}{after}" for url, text in links])


@lru_cache(maxsize=256)
def _pieces(form: str, more: str) -> tuple[str, str, str]:
    """What stands before, between and after the URL and the text of an entry."""
    before, _, rest = form.partition("{url}")
    between, _, after = rest.replace("{more}", more).partition("{text}")
    return before, between, after


def _menu(site: Site, skin: Skin, block: Block) -> str:
    return skin.menu.format(heading=block.heading, inside=_entries(site, skin.entry, block.links))


def _side(site: Site, skin: Skin, block: Block) -> str:
    if not block.links:
        return ""
    return skin.side.format(heading=block.heading, inside=_entries(site, skin.side_entry, block.links, _more(block)))


def _more(block: Block) -> str:
    return NOFOLLOW if block.nofollow else ""


def _inline(site: Site, skin: Skin, block: Block) -> str:
    if not block.links:
        return ""
    inside = _entries(site, '<a href="{url}"{more}>{text}</a>\n', block.links, _more(block))
    return f'<div class="{block.role}"><span class="label">{block.heading}</span>\n{inside}</div>\n'


def _headline(site: Site, skin: Skin, block: Block) -> str:
    return skin.heading.format(block.heading)


def _byline(site: Site, skin: Skin, block: Block) -> str:
    when = block.texts[0]
    stamp = f'<time datetime="{when[-10:]}">{when}</time>'
    links = _entries(site, '<a class="author" rel="author" href="{url}">{text}</a> ', block.links)
    return f'<div class="byline">{block.heading} {links}<span class="sep">|</span> {stamp}</div>\n'


def _text(site: Site, skin: Skin, block: Block) -> str:
    before, _, after = skin.paragraph.partition("{}")
    return before + f"{after}{before}".join(block.texts) + after


def _list(site: Site, skin: Skin, block: Block) -> str:
    before, _, rest = skin.story.replace("{more}", _more(block)).partition("{url}")
    between, _, rest = rest.partition("{text}")
    middle, _, after = rest.partition("{story}")
    return "".join(
        [
            f"{before}{href(site, url)}{between}{text}{middle}{story}{after}"
            for (url, text), story in zip(block.links, block.texts, strict=True)
        ]
    )


def _comments(site: Site, skin: Skin, block: Block) -> str:
    said = '</p></div></li>\n<li class="comment"><div class="comment-body"><p>'.join(block.texts)
    return f'<div id="comments"><h3>{block.heading}</h3>\n<ol>\n<li class="comment"><div class="comment-body"><p>{said}</p></div></li>\n</ol></div>\n'


def _table(site: Site, skin: Skin, block: Block) -> str:
    rows = "".join(
        f"<tr><th>{name}</th><td>{value}</td></tr>\n" for name, _, value in (row.partition("\t") for row in block.texts)
    )
    return f'<table class="facts"><caption>{block.heading}</caption>\n{rows}</table>\n'


def _code(site: Site, skin: Skin, block: Block) -> str:
    return f'<div class="highlight"><pre><code>{"".join(block.texts)}</code></pre></div>\n'


def _picture(site: Site, skin: Skin, block: Block) -> str:
    url, text = block.links[0]
    return f'<figure><img src="{href(site, url)}" alt="{text}" width="640" height="360"><figcaption>{text}</figcaption></figure>\n'


def _form(site: Site, skin: Skin, block: Block) -> str:
    url, text = block.links[0]
    return f'<form method="get" action="{href(site, url)}"><input type="text" name="q"><input type="submit" value="{text}"></form>\n'


def _footer(site: Site, skin: Skin, block: Block) -> str:
    links = _entries(site, '<a href="{url}">{text}</a> |\n', block.links)
    return f'<p class="legal">{links}© {site.name}. {block.heading}</p>\n'


Writer = Callable[[Site, Skin, Block], str]
WRITERS: dict[str, Writer] = {
    "menu": _menu, "headline": _headline, "byline": _byline, "text": _text, "list": _list, "comments": _comments, "table": _table,
    "code": _code, "picture": _picture, "form": _form, "footer": _footer, "aside": _side, "archive": _side,
}  # fmt: skip
WRITERS |= dict.fromkeys(("crumbs", "pager", "tags", "also", "facets", "external"), _inline)
