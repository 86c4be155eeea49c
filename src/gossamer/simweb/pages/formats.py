"""Pages that are not HTML: feeds, sitemaps, PDF and pictures. Nothing is compressed, for compressors differ between machines."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

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
    page = next((page for page in site.kind.pages if page.format == "sitemap"), None)
    if page is None:
        return []
    parts = RANGES["sitemap"].parts(site, page, (0, 1), moment)
    return [site.origin + address(site, page, (0, part), moment) for part in range(1, parts + 1)]


def sitemap_index(site: Site, moment: int) -> bytes:
    """The index that names all sitemaps."""
    entries = "".join(f"<sitemap><loc>{_escape(url)}</loc></sitemap>\n" for url in sitemap_urls(site, moment))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{entries}</sitemapindex>\n'.encode()


def pdf(here: View) -> bytes:
    """A text as PDF: in a font every reader has, or by its Unicode numbers where that font lacks letters."""
    assert here.item is not None
    version = here.site.life(here.item.number).version(here.moment)
    text = [title(here), ""]
    for paragraph in paragraphs(here.site, here.item, version, here.site.kind.paragraphs):
        text += [*_wrapped(paragraph), ""]
    pages = [text[start : start + LINES] for start in range(0, len(text), LINES)]
    try:
        "".join(text).encode("cp1252")
    except UnicodeEncodeError:
        return _pdf(pages, title(here), UNICODE_FONT, _hexadecimal)
    return _pdf(pages, title(here), LATIN_FONT, _literal)


def _wrapped(text: str) -> list[str]:
    """Lines of a text; where words have no spaces between them, by length alone."""
    lines, line = [], ""
    for word in text.split():
        while len(word) > LINE:
            lines.append(word[: LINE // 2])
            word = word[LINE // 2 :]
        if line and len(line) + len(word) >= LINE:
            lines.append(line)
            line = ""
        line = f"{line} {word}" if line else word
    return [*lines, line]


def _pdf(pages: list[list[str]], name: str, font: tuple[bytes, ...], spell: Callable[[str], bytes]) -> bytes:
    """The objects of a PDF: catalogue, pages, information, the font's, then a page and its content each."""
    first = 4 + len(font)
    kids = " ".join(f"{first + 2 * n} 0 R" for n in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Title <FEFF" + name.encode("utf-16-be").hex().upper().encode() + b"> /Producer (Gossamer simweb) >>",
        *font,
    ]
    for place, lines in enumerate(pages):
        shown = b"".join(spell(line) + b" Tj T*\n" for line in lines)
        content = b"BT /F1 10 Tf 50 790 Td 14 TL\n" + shown + b"ET\n"
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 4 0 R >> >> /Contents %d 0 R >>"
            % (first + 1 + 2 * place)
        )
        objects.append(_stream(content))
    out, offsets = bytearray(b"%PDF-1.4\n"), []
    for number, item in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n" % number + item + b"\nendobj\n"
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    end = b"trailer\n<< /Size %d /Root 1 0 R /Info 3 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, len(out))
    return bytes(out) + b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + table + end


def _stream(content: bytes) -> bytes:
    return b"<< /Length %d >>\nstream\n" % len(content) + content + b"endstream"


def _unicode_map() -> bytes:
    """A CMap by which every code is its own Unicode number, in ranges of one leading byte as readers want them."""
    ranges = [b"<%02X00> <%02XFF> <%02X00>\n" % (high, high, high) for high in range(256)]
    blocks = [ranges[start : start + 100] for start in range(0, 256, 100)]
    listed = b"".join(b"%d beginbfrange\n" % len(block) + b"".join(block) + b"endbfrange\n" for block in blocks)
    return (
        b"/CIDInit /ProcSet findresource begin\n12 dict begin\nbegincmap\n/CMapName /Simweb def\n/CMapType 2 def\n"
        b"1 begincodespacerange\n<0000> <FFFF>\nendcodespacerange\n" + listed + b"endcmap\nend\nend\n"
    )


LATIN_FONT = (b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",)
UNICODE_FONT = (
    b"<< /Type /Font /Subtype /Type0 /BaseFont /Simweb /Encoding /Identity-H /DescendantFonts [5 0 R] /ToUnicode 7 0 R >>",
    b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Simweb /FontDescriptor 6 0 R /DW 600 /CIDSystemInfo %b >>"
    % b"<< /Registry (Adobe) /Ordering (Identity) /Supplement 0 >>",
    b"<< /Type /FontDescriptor /FontName /Simweb /Flags 4 /FontBBox [0 -200 1000 900] /ItalicAngle 0 /StemV 80 %b >>"
    % b"/Ascent 800 /Descent -200 /CapHeight 700",
    _stream(_unicode_map()),
)


def _hexadecimal(text: str) -> bytes:
    """A text by the numbers of its letters; those beyond the first 65,536 do not occur."""
    return b"<" + text.encode("utf-16-be").hex().upper().encode() + b">"


def _literal(text: str) -> bytes:
    text_bytes = text.encode("cp1252").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")
    return b"(" + text_bytes + b")"


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
