"""The clock: pages change when they say so, and clients that know them are told."""

from __future__ import annotations

from email.utils import formatdate, parsedate_to_datetime

import pytest

from gossamer.simweb.pages.find import address, resolve
from gossamer.simweb.pages.respond import respond
from gossamer.simweb.serving.server import Time
from tests.unit.simweb.webs import DAY, KINDS, natural, small, web_with


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_has_new_bytes_only_under_a_new_tag(kind: str):
    web = web_with(kind, hosts=4, pages=300, traits={"no-tags": 0.0, "no-dates": 0.0, "no-validators": 0.0})
    changes = 0
    for index in range(web.hosts):
        site = web.site(index)
        for _, _, path in list(natural(site, web.start))[:: max(1, site.size // 4)]:
            before: tuple[str, str, bytes] | None = None
            for moment in range(web.start - 40 * DAY, web.start + 120 * DAY, 8 * DAY):
                answer = respond(web, "http", site.host, path, moment)
                if answer.status != 200 or "ETag" not in (fields := dict(answer.headers)):
                    before = None
                    continue
                now = (fields["ETag"], fields["Last-Modified"], answer.body)
                assert parsedate_to_datetime(now[1]).timestamp() <= moment
                if before is not None:
                    assert (before[0] == now[0]) == (before[2] == now[2])
                    assert before[1] != now[1] or before[2] == now[2]
                    changes += before[2] != now[2]
                before = now
    assert changes >= 2


def test_a_client_that_knows_the_page_is_told_so():
    web = web_with("wiki", traits={"no-tags": 0.0, "no-dates": 0.0, "no-validators": 0.0})
    site = web.site(0)
    first = respond(web, "http", site.host, "/", web.start)
    fields = dict(first.headers)
    known = {"if-none-match": fields["ETag"]}
    dated = {"if-modified-since": fields["Last-Modified"]}
    for headers in (known, dated, known | dated, {"if-none-match": f'"x", W/{fields["ETag"]}'}, {"if-none-match": "*"}):
        again = respond(web, "http", site.host, "/", web.start, headers)
        assert (again.status, again.body) == (304, b"")
        assert dict(again.headers)["ETag"] == fields["ETag"]
    stale = formatdate(parsedate_to_datetime(fields["Last-Modified"]).timestamp() - 1, usegmt=True)
    others = (
        {"if-none-match": '"other"'},
        {"if-modified-since": stale},
        {"if-none-match": '"other"'} | dated,
        {"if-modified-since": "yesterday"},
    )
    for headers in others:
        assert respond(web, "http", site.host, "/", web.start, headers).status == 200
    later = respond(web, "http", site.host, "/", web.start + 365 * DAY, known | dated)
    assert later.status == 200


@pytest.mark.parametrize(
    ("trait", "has"), [("no-tags", {"Last-Modified"}), ("no-dates", {"ETag"}), ("no-validators", set())]
)
def test_hosts_without_validators(trait: str, has: set[str]):
    web = web_with("wiki", traits={trait: 1.0})
    headers = dict(respond(web, "http", web.site(0).host, "/", web.start).headers)
    assert {"ETag", "Last-Modified"} & headers.keys() == has
    asking = {"if-none-match": '"x"', "if-modified-since": formatdate(web.start, usegmt=True)}
    assert respond(web, "http", web.site(0).host, "/", web.start, asking).status == 200


def test_an_item_is_born_edited_and_deleted():
    web = small("news", hosts=3, pages=3000)
    site = web.site(0)
    page = next(page for page in site.kind.pages if page.useful)
    number = next(
        n
        for n in range(site.count(web.start))
        if site.life(n).edits and site.life(n).moved > web.start and site.born(n) < site.relaunch - 400 * DAY
    )
    life = site.life(number)
    path = address(site, page, (number, 1), life.born)
    assert resolve(site, path, life.born - 1).status == 404
    bodies = [
        respond(web, "http", site.host, path, moment).body for moment in (life.born, life.edits[0] - 1, life.edits[0])
    ]
    assert bodies[0] == bodies[1] != bodies[2]
    dead = next(n for n in range(site.count(web.start)) if site.life(n).deleted < web.start)
    path, end = address(site, page, (dead, 1), site.life(dead).deleted - 1), site.life(dead).deleted
    assert resolve(site, path, end - 1).status == 200
    assert resolve(site, path, end).status in (404, 410)


def test_listings_show_what_is_new_at_their_next_look():
    web = small("news", hosts=3, pages=3000)
    site = web.site(0)
    number = site.count(web.start)
    born, seen = site.born(number), site.seen(site.born(number))
    title = site.item(number).title.encode()
    assert title not in respond(web, "http", site.host, "/", born).body or seen == born
    assert title in respond(web, "http", site.host, "/", seen).body


def test_the_clock_stands_or_runs(monkeypatch: pytest.MonkeyPatch):
    now = [100.0]
    monkeypatch.setattr("gossamer.simweb.serving.server.time.monotonic", lambda: now[0])
    still, fast = Time(1_000), Time(1_000, 3600)
    now[0] += 2.5
    assert (still.now(), fast.now()) == (1_000, 1_000 + 9_000)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_do_not_depend_on_what_was_asked_before(kind: str):
    one, other = (web_with(kind, hosts=4, pages=200, traits={"sessions": 0.2, "mirror": 0.3}) for _ in range(2))
    asked = []
    for index in range(one.hosts):
        site = one.site(index)
        for moment in (one.start - 700 * DAY, one.start - 90 * DAY, one.start, one.start + 300 * DAY):
            paths = [path for _, _, path in natural(site, moment)]
            asked += [(site.host, path, moment) for path in paths[:: 1 + len(paths) // 25]]
    forth = [respond(one, "http", *each) for each in asked]
    back = [respond(other, "http", *each) for each in reversed(asked)]
    for each, first, second in zip(asked, forth, reversed(back), strict=True):
        assert first == second, each
