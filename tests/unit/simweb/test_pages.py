"""Pages: every URL names its page, and the HTML says what the blocks say."""

from __future__ import annotations

import re
import struct
import zlib
from collections import Counter
from xml.etree import ElementTree

import pytest

from gossamer.simweb.pages.blocks import compose
from gossamer.simweb.pages.body import words
from gossamer.simweb.pages.find import address, look, resolve, where
from gossamer.simweb.pages.formats import FEED_LENGTH
from gossamer.simweb.pages.respond import respond
from gossamer.simweb.pages.robots import allowed
from gossamer.simweb.sites.life import NEVER
from gossamer.simweb.sites.site import Site
from gossamer.simweb.sites.text import languages
from gossamer.simweb.truth.survey import links_on
from tests.unit.simweb.webs import DAY, KINDS, links_of, natural, small, web_with


def item_page(site: Site):
    return next(page for page in site.kind.pages if page.over == "item")


@pytest.mark.parametrize("kind", KINDS)
def test_every_page_is_found_under_its_own_address(kind: str):
    web = small(kind)
    seen: Counter[str] = Counter()
    for index in range(web.hosts):
        site = web.site(index)
        for moment in (web.start - 200 * DAY, web.start, web.start + 200 * DAY):
            paths = set()
            for page, args, path in natural(site, moment):
                found = resolve(site, path, moment)
                gone = page.over == "item" and site.life(args[0]).deleted <= moment
                if not gone:
                    assert (found.status, found.page, found.args, found.own) == (200, page, args, path)
                    assert site.launch <= found.since <= moment
                else:
                    assert found.status in (404, 410) or found.soft
                assert path not in paths, "two pages with one address"
                paths.add(path)
                seen[page.name] += 1
    made_by_links = {page.name for page in site.kind.pages if page.over in ("go", "search", "facets")}
    assert set(seen) == {page.name for page in site.kind.pages} - made_by_links


@pytest.mark.parametrize("kind", KINDS)
def test_html_has_the_links_and_texts_of_its_blocks(kind: str):
    web = small(kind)
    for index in range(web.hosts):
        site = web.site(index)
        for page, _, path in list(natural(site, web.start))[::7]:
            found = resolve(site, path, web.start)
            if found.status != 200 or page.format != "html":
                continue
            url = site.origin + path
            body = respond(web, "https" if site.secure else "http", site.host, path, web.start).body.decode(
                site.charset
            )
            read = links_of(url, body)
            told = [(kind_, dst) for dst, _, kind_, _ in links_on(site, site.origin, found)]
            assert sorted(read.found) == sorted(told)
            text = "".join(read.text)
            for block in compose(found):
                if block.role in ("text", "list", "comments"):
                    assert all(piece in text for piece in block.texts)
            for dst, anchor, kind_, _ in links_on(site, site.origin, found):
                if kind_ == "a":
                    assert anchor in read.anchors[dst]


@pytest.mark.parametrize("style", ["absolute-links", "scheme-relative", "base-links"])
def test_links_lead_to_the_same_pages_however_they_are_written(style: str):
    web = web_with("news", traits={style: 1.0})
    site = web.site(0)
    body = respond(web, "http", site.host, "/", web.start).body.decode(site.charset)
    found = resolve(site, "/", web.start)
    assert sorted(links_of(f"{site.origin}/", body).found) == sorted(
        (k, d) for d, _, k, _ in links_on(site, site.origin, found)
    )
    if style == "scheme-relative":
        assert f'href="//{site.host}/' in body


def test_unknown_paths_are_missing():
    site = small("news").site(0)
    for path in (
        "/nothing",
        "/archive/2024/13/",
        "/archive/2024/02/30/",
        "/tag/none",
        "/print.php?id=1",
        "/%00",
        "/comments/99999999/",
    ):
        assert resolve(site, path, site.web.start).status == 404, path


def test_a_wrong_slug_is_missing_and_an_unknown_parameter_is_ignored():
    site = small("news").site(0)
    page = item_page(site)
    number = next(n for n in range(50) if not site.item(n).restless)
    path = address(site, page, (number, 1), site.web.start)
    assert resolve(site, path, site.web.start).status == 200
    slug = site.item(number).slug
    assert resolve(site, path.replace(slug, f"{slug}x"), site.web.start).status == 404
    marked = resolve(site, f"{path}?utm_source=mail&x=1", site.web.start)
    assert (marked.status, marked.own) == (200, path)


def test_a_moved_item_redirects_from_then_on():
    site = next(
        small("docs", hosts=4, pages=2000).site(n)
        for n in range(4)
        if small("docs", hosts=4, pages=2000).site(n).relaunch == NEVER
    )
    page = item_page(site)
    number = next(n for n in range(site.count(site.web.start)) if site.life(n).moved < site.web.start)
    moved = site.life(number).moved
    before = address(site, page, (number, 1), moved - 1)
    after = address(site, page, (number, 1), moved)
    assert before != after
    assert resolve(site, before, moved - 1).status == 200
    assert resolve(site, after, moved - 1).status == 404
    found = resolve(site, before, moved)
    assert found.status in (301, 302)
    assert found.target == site.origin + after
    assert resolve(site, after, moved).status == 200


@pytest.mark.parametrize(("trait", "status"), [("", 301), ("forgets", 404), ("keeps", 200)])
def test_a_relaunch_changes_all_urls(trait: str, status: int):
    traits = {"forgets": 0.0, "keeps": 0.0, "soft404": 0.0, "says-gone": 0.0} | ({trait: 1.0} if trait else {})
    web = web_with("blog", hosts=60, pages=1200, traits=traits)
    site = next(web.site(n) for n in range(60) if web.site(n).relaunch < NEVER)
    page = item_page(site)
    number = next(n for n in range(site.count(site.relaunch)) if not site.item(n).restless)
    old, new = (where(site, page, (number, 1), era, moved=False) for era in (0, 1))
    assert [resolve(site, path, site.relaunch - 1).status for path in (old, new)] == [200, 404]
    assert [resolve(site, path, site.relaunch).status for path in (old, new)] == [status, 200]
    if status == 301:
        assert resolve(site, old, site.relaunch).target == site.origin + new
    assert resolve(site, new, site.relaunch).since == site.relaunch


def test_the_other_name_redirects_mirrors_or_is_absent():
    for traits, status in (
        ({"mirror": 0.0, "one-name": 0.0}, 301),
        ({"mirror": 1.0}, 200),
        ({"one-name": 1.0, "mirror": 0.0}, 421),
    ):
        web = web_with("wiki", traits=traits)
        site = web.site(0)
        found = look(web, "http", site.other_host, "/", web.start)
        assert found.status == status
        if status == 301:
            assert found.target == f"{site.origin}/"
        if status == 200:
            bodies = [
                respond(web, "http", host, "/wiki/about", web.start).body for host in (site.host, site.other_host)
            ]
            assert bodies[0] == bodies[1]


def test_plain_http_leads_to_https_where_that_is_the_sites_own():
    web = web_with("wiki", https=1.0)
    site = web.site(0)
    assert site.origin.startswith("https://")
    assert look(web, "http", site.host, "/x?y=1", web.start).target == f"{site.origin}/x?y=1"
    assert look(web, "https", site.host, "/", web.start).status == 200


def test_ports_are_in_the_urls_when_asked_for():
    web = web_with("wiki", port=8080)
    assert web.site(0).origin.endswith(":8080")
    assert all(
        ":8080/" in url
        for url, _, _, _ in links_on(web.site(0), web.site(0).origin, resolve(web.site(0), "/", web.start))
    )


def test_session_ids_multiply_pages_but_not_texts():
    web = web_with("news", traits={"sessions": 1.0})
    site = web.site(0)
    first = respond(web, "http", site.host, "/", web.start).body.decode()
    ids = set(re.findall(r"sid=(\w+)", first))
    assert len(ids) == 1
    session = ids.pop()
    inside = respond(web, "http", site.host, f"/about?sid={session}", web.start)
    assert inside.status == 200
    assert set(re.findall(r"sid=(\w+)", inside.body.decode())) == {session}
    plain = respond(web, "http", site.host, "/about", web.start).body.decode()
    strip = re.compile(r"[?&](amp;)?sid=\w+")
    assert strip.sub("", plain) == strip.sub("", inside.body.decode())


def test_filters_in_any_order_show_the_same():
    site = small("shop").site(0)
    base = next(path for page, args, path in natural(site, site.web.start) if page.over == "section" and args == (0, 1))
    one, other = (
        resolve(site, f"{base}?{query}", site.web.start) for query in ("color=red&sort=new", "sort=new&color=red")
    )
    assert one.page is not None
    assert one.page.over == "facets"
    assert one.own != other.own
    lists = [[block.links for block in compose(found) if block.role == "list"] for found in (one, other)]
    assert lists[0] == lists[1]
    assert resolve(site, f"{base}?color=pink", site.web.start).page is not one.page


def test_a_redirector_leads_anywhere_but_only_by_http():
    site = small("portal").site(0)
    assert resolve(site, "/go?url=http%3A%2F%2Fx.test%2F%3Fa%3D1", site.web.start).target == "http://x.test/?a=1"
    assert resolve(site, "/go?url=javascript%3Aalert", site.web.start).status == 404


def test_a_calendar_ends_where_its_depth_says():
    site = small("events").site(0)
    depth = next(page.depth for page in site.kind.pages if page.over == "calendar")
    month = 2026 * 12 + depth
    last, beyond = (f"/calendar/{m // 12:04d}/{m % 12 + 1:02d}" for m in (month, month + 1))
    assert resolve(site, last, site.web.start).status == 200
    assert resolve(site, beyond, site.web.start).status == 404


@pytest.mark.parametrize("kind", ["news", "blog", "gazette"])
def test_feeds_name_the_newest_items(kind: str):
    web = small(kind)
    site = web.site(0)
    for page in site.kind.pages:
        if page.format in ("rss", "atom"):
            body = respond(web, "http", site.host, address(site, page, (0, 1), web.start), web.start).body
            tree = ElementTree.fromstring(body)
            entries = tree.findall(".//item") or tree.findall(".//{http://www.w3.org/2005/Atom}entry")
            assert 1 <= len(entries) <= FEED_LENGTH
            newest = site.item(site.count(site.rebuilt(web.start)) - 1)
            assert site.gone(newest, web.start) or newest.title in body.decode()


def test_sitemaps_name_every_item_that_is_there():
    web = small("shop")
    site = web.site(0)
    index = ElementTree.fromstring(respond(web, "http", site.host, "/sitemap.xml", web.start).body)
    space = "{http://www.sitemaps.org/schemas/sitemap/0.9}"
    named = set()
    for entry in index.iter(f"{space}loc"):
        part = respond(web, "http", site.host, str(entry.text).removeprefix(site.origin), web.start)
        named |= {loc.text for loc in ElementTree.fromstring(part.body).iter(f"{space}loc")}
    page = next(page for page in site.kind.pages if page.useful)
    there = {
        site.origin + address(site, page, (n, 1), web.start)
        for n in range(site.count(site.rebuilt(web.start)))
        if not site.gone(site.item(n), web.start)
    }
    assert named == there


def test_a_pdf_is_one():
    web = small("library")
    site = web.site(0)
    path = next(path for page, _, path in natural(site, web.start) if page.format == "pdf")
    body = respond(web, "http", site.host, path, web.start).body
    assert body.startswith(b"%PDF-1.4\n")
    table = int(body.rsplit(b"startxref\n", 1)[1].split()[0])
    assert body[table:].startswith(b"xref\n0 ")
    offsets = [int(line[:10]) for line in body[table:].splitlines() if line.endswith(b" n ")]
    for number, offset in enumerate(offsets, 1):
        assert body[offset:].startswith(b"%d 0 obj" % number)
    for length, content in re.findall(rb"/Length (\d+) >>\nstream\n(.*?)endstream", body, re.DOTALL):
        assert len(content) == int(length)


def test_a_picture_is_one():
    web = small("news")
    site = web.site(0)
    path = next(path for page, _, path in natural(site, web.start) if page.format == "png")
    body = respond(web, "http", site.host, path, web.start).body
    assert body.startswith(b"\x89PNG\r\n\x1a\n")
    rest, names = body[8:], []
    while rest:
        (length,) = struct.unpack(">I", rest[:4])
        name, data = rest[4:8], rest[8 : 8 + length]
        assert struct.unpack(">I", rest[8 + length : 12 + length])[0] == zlib.crc32(name + data)
        if name == b"IDAT":
            assert len(zlib.decompress(data)) == 8 * 25
        names.append(name)
        rest = rest[12 + length :]
    assert names == [b"IHDR", b"IDAT", b"IEND"]


@pytest.mark.parametrize("code", languages())
@pytest.mark.parametrize(
    ("trait", "in_header", "in_page"),
    [
        ("charset-legacy", True, True), ("charset-in-header", True, False), ("charset-in-page", False, True),
        ("charset-unknown", False, False), ("utf8-unknown", False, False),
    ],
)  # fmt: skip
def test_charsets_are_declared_as_the_trait_says(code: str, trait: str, in_header: bool, in_page: bool):
    web = web_with("blog", hosts=2, traits={trait: 1.0}, languages={code: 1})
    site = web.site(0)
    response = respond(web, "http", site.host, "/", web.start)
    text = response.body.decode(site.charset)
    assert (f"charset={site.charset.replace('_', '-')}" in dict(response.headers)["Content-Type"]) == in_header
    assert (
        f'charset="{site.charset.replace("_", "-")}"' in text or f"; charset={site.charset.replace('_', '-')}" in text
    ) == in_page
    assert site.sections[0][0] in text
    if trait.startswith("charset") and site.language.charsets:
        assert site.charset in site.language.charsets


def test_wrong_charsets_are_wrong():
    for trait, claimed in (("charset-wrong", "utf-8"), ("utf8-wrong", "iso-8859-1")):
        web = web_with("blog", traits={trait: 1.0}, languages={"ru": 1})
        response = respond(web, "http", web.site(0).host, "/", web.start)
        assert dict(response.headers)["Content-Type"] == f"text/html; charset={claimed}"
        assert web.site(0).charset != claimed


@pytest.mark.parametrize(
    "variant", ["plain", "none", "empty", "closed", "broken", "redirect", "html", "messy", "named", "large"]
)
def test_robots_mean_what_they_say(variant: str):
    traits = {
        f"robots-{name}": 0.0
        for name in ("none", "empty", "closed", "broken", "redirect", "html", "messy", "named", "large", "slow")
    }
    web = web_with("news", traits=traits | ({f"robots-{variant}": 1.0} if variant != "plain" else {}))
    site = web.site(0)
    answer = respond(web, "http", site.host, "/robots.txt", web.start)
    statuses = {"none": 404, "broken": 500, "redirect": 301}
    assert answer.status == statuses.get(variant, 200)
    if variant == "redirect":
        where_to = dict(answer.headers)["Location"].removeprefix(site.origin)
        answer = respond(web, "http", site.host, where_to, web.start)
    lines = re.split(rb"[\r\n]+", answer.body.removeprefix(b"\xef\xbb\xbf"))
    rules = [line.split(b":", 1)[1].strip().decode() for line in lines if line.lower().startswith(b"disallow:")]
    if variant in ("plain", "redirect", "messy", "named", "large"):
        assert "/print.php?id=" in rules
        assert not allowed(site, "/print.php?id=7")
        assert allowed(site, "/about")
    else:
        assert allowed(site, "/about") == (variant in ("none", "empty", "html"))
        assert allowed(site, "/print.php?id=7") == (variant in ("none", "empty", "html"))
    if variant == "large":
        assert len(answer.body) > 250_000


def test_texts_are_chosen_by_their_key_from_the_topic():
    site = small("blog").site(0)
    about = site.topic(3)
    assert words(site, about, 5, (20, 20)) == words(site, about, 5, (20, 20))
    assert words(site, about, 5, (20, 20))[:10] == words(site, about, 5, (10, 10))
    assert words(site, about, 5, (20, 20)) != words(site, about, 6, (20, 20))
    whole = " ".join(about.sentences)
    assert all(text in whole for text in words(site, about, 2**64 - 1, (60, 60)))


def test_wire_stories_are_told_alike_but_not_quite():
    web = small("gazette", hosts=40, pages=4000)
    stories: dict[int, list[tuple[Site, int]]] = {}
    for index in range(40):
        site = web.site(index)
        for number in range(site.count(web.start)):
            if site.item(number).story >> 62 & 1:
                stories.setdefault(site.item(number).story, []).append((site, number))
    shared = [told for told in stories.values() if len({site.index for site, _ in told}) > 1]
    assert len(shared) > 20
    assert all(len({site.index for site, _ in told}) == len(told) for told in stories.values()), (
        "told twice on one site"
    )
    alike = []
    for told in shared[:20]:
        texts = [_sentences(site, number) for site, number in told[:2]]
        alike.append(len(texts[0] & texts[1]) / len(texts[0] | texts[1]))
        assert texts[0] != texts[1]
    assert min(alike) > 0.5


def _sentences(site: Site, number: int) -> set[str]:
    found = resolve(site, address(site, item_page(site), (number, 1), site.born(number)), site.born(number))
    texts = next(block.texts for block in compose(found) if block.role == "text")
    return {sentence for text in texts for sentence in text.split(". ")}
