"""Pages that are not HTML: feeds, sitemaps, PDF and pictures. Nothing is compressed, for compressors differ between machines."""

from __future__ import annotations

import struct
import zlib

from gossamer.simweb.pages.body import paragraphs, teaser
from gossamer.simweb.pages.find import Found, address
from gossamer.simweb.pages.ranges import RANGES
from gossamer.simweb.pages.view import View, item_link, title
from gossamer.simweb.sites.banks import day
from gossamer.simweb.sites.life import DAY
from gossamer.simweb.sites.site import Site

FEED_LENGTH = 15
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
LINE = 92  # characters of a line in a PDF
LINES = 52  # on a page of it


def stamp(moment: int) -> str:
    """ISO 8601, to the second."""
    days, seconds = divmod(moment, DAY)
    return f"{'-'.join(day(days))}T{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}Z"


def http_date(moment: int) -> str:
    """A time as headers and RSS write it."""
    days, seconds = divmod(moment, DAY)
    year, month, date = day(days)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{WEEKDAYS[(days + 3) % 7]}, {date} {MONTHS[int(month) - 1]} {year} {clock} GMT"


def listed(here: View) -> list[tuple[str, str, int]]:
    """What a feed or a sitemap names: URL, title, and the number of the item."""
    found = []
    for number in RANGES[here.page.over].items(here.site, here.page, here.found.args, here.moment):
        link = item_link(here.site, number, here.moment)
        if link is not None:
            found.append((here.site.origin + link[0], link[1], number))
    return found if here.page.format == "sitemap" else found[:FEED_LENGTH]


def rss(here: View) -> bytes:
    """An RSS 2.0 feed of the newest items."""
    site = here.site
    entries = "".join(
        f"<item>\n<title>{text}</title>\n<link>{_escape(url)}</link>\n<guid>{_escape(url)}</guid>\n"
        f"<pubDate>{http_date(site.born(number))}</pubDate>\n<description>{teaser(site, site.item(number))}</description>\n</item>\n"
        for url, text, number in listed(here)
    )
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<rss version="2.0">\n<channel>\n'
        f"<title>{site.name}</title>\n<link>{site.origin}/</link>\n<description>{site.sections[0][0]}</description>\n"
        f"<language>{site.code}</language>\n{entries}</channel>\n</rss>\n"
    ).encode()


def atom(here: View) -> bytes:
    """An Atom feed of the newest items."""
    site = here.site
    entries = "".join(
        f'<entry>\n<title>{text}</title>\n<link href="{_escape(url)}"/>\n<id>{_escape(url)}</id>\n'
        f"<updated>{stamp(site.life(number).changed(here.moment))}</updated>\n<summary>{teaser(site, site.item(number))}</summary>\n</entry>\n"
        for url, text, number in listed(here)
    )
    return (
        f'<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="{site.code}">\n'
        f"<title>{site.name}</title>\n<id>{site.origin}/</id>\n<updated>{stamp(here.moment)}</updated>\n{entries}</feed>\n"
    ).encode()


def sitemap(here: View) -> bytes:
    """One sitemap of items, with the dates of their last change."""
    site = here.site
    often = "daily" if site.kind.steady else "monthly"
    entries = "".join(
        f"<url><loc>{_escape(url)}</loc><lastmod>{stamp(site.life(number).changed(here.moment))}</lastmod><changefreq>{often}</changefreq></url>\n"
        for url, _, number in listed(here)
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{entries}</urlset>\n'.encode()


def sitemap_urls(site: Site, moment: int) -> list[str]:
    """The sitemaps of a site."""
    pages = [page for page in site.kind.pages if page.format == "sitemap"]
    return (
        [
            site.origin + address(site, pages[0], (0, part), moment)
            for part in range(1, RANGES["sitemap"].parts(site, pages[0], (0, 1), moment) + 1)
            if pages
        ]
        if pages
        else []
    )


def sitemap_index(site: Site, moment: int) -> bytes:
    """The index that names all sitemaps."""
    entries = "".join(f"<sitemap><loc>{_escape(url)}</loc></sitemap>\n" for url in sitemap_urls(site, moment))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{entries}</sitemapindex>\n'.encode()


def pdf(here: View) -> bytes:
    """A text as PDF, in a font every reader has; letters beyond Latin-1 become question marks."""
    assert here.item is not None
    version = here.site.life(here.item.number).version(here.moment)
    text = [title(here), ""]
    for paragraph in paragraphs(here.site, here.item, version, here.site.kind.paragraphs):
        text += [*_wrapped(paragraph), ""]
    return _pdf([text[start : start + LINES] for start in range(0, len(text), LINES)], title(here))


def _wrapped(text: str) -> list[str]:
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + len(word) >= LINE:
            lines.append(line)
            line = ""
        line = f"{line} {word}" if line else word
    return [*lines, line]


def _pdf(pages: list[list[str]], name: str) -> bytes:
    """The objects of a PDF: catalogue, pages, font, information, then a page and its content each."""
    kids = " ".join(f"{5 + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
        b"<< /Title (" + _literal(name) + b") /Producer (Gossamer simweb) >>",
    ]
    for place, lines in enumerate(pages):
        content = (
            b"BT /F1 10 Tf 50 790 Td 14 TL\n"
            + b"".join(b"(" + _literal(line) + b") Tj T*\n" for line in lines)
            + b"ET\n"
        )
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>"
            % (6 + 2 * place)
        )
        objects.append(b"<< /Length %d >>\nstream\n" % len(content) + content + b"endstream")
    out, offsets = bytearray(b"%PDF-1.4\n"), []
    for number, item in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n" % number + item + b"\nendobj\n"
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    end = b"trailer\n<< /Size %d /Root 1 0 R /Info 4 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(out))
    return bytes(out) + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + end


def _literal(text: str) -> bytes:
    return text.encode("cp1252", "replace").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")


def png(found: Found) -> bytes:
    """A picture of one colour, 8 by 8, in stored blocks."""
    assert found.site is not None
    key = found.site.item(found.args[0]).key
    row = b"\0" + bytes((key & 255, key >> 8 & 255, key >> 16 & 255)) * 8
    raw = row * 8
    stored = (
        b"\x78\x01\x01" + struct.pack("<HH", len(raw), 0xFFFF ^ len(raw)) + raw + struct.pack(">I", zlib.adler32(raw))
    )
    return (
        b"\x89PNG\r\n\x1a\n"
        + _chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0))
        + _chunk(b"IDAT", stored)
        + _chunk(b"IEND", b"")
    )


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _escape(url: str) -> str:
    return url.replace("&", "&amp;")
