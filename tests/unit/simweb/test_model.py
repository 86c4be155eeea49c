"""Chance, names, patterns and sites: what the web is before anything is on it."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from gossamer.simweb.config import Manner, load_web
from gossamer.simweb.sites.banks import day
from gossamer.simweb.sites.draw import below, chance, key_of, logarithmic, numbers, pick
from gossamer.simweb.sites.life import NEVER, Fates, life, restless
from gossamer.simweb.sites.names import Names
from gossamer.simweb.sites.pattern import SPAN, Pattern
from gossamer.simweb.sites.site import day_number, month_days
from gossamer.simweb.sites.text import languages
from gossamer.simweb.web import Web
from tests.unit.simweb.webs import DAY, KINDS, site_at, small


def test_chance_is_the_same_everywhere():
    assert key_of(1, "site", 5) == 0x1B7ABB874F4A9C4E
    assert numbers(1, 3) == (3184085966, 786048589, 3154697249)
    assert numbers(1, 6) == (3184085966, 786048589, 3154697249, 2572023970, 1585032768, 1854223708)


def test_draws_stay_in_their_ranges_and_are_even():
    drawn = numbers(7, 20_000)
    assert all(0 <= number < 1 << 32 for number in drawn)
    counts = Counter(below(number, 10) for number in drawn)
    assert set(counts) == set(range(10))
    assert min(counts.values()) > 1_800
    assert 0.28 < sum(chance(number, 300_000) for number in drawn) / len(drawn) < 0.32
    assert {pick(number, "abc") for number in drawn} == set("abc")


def test_small_ranks_come_often():
    drawn = Counter(logarithmic(number, 1000) for number in numbers(9, 20_000))
    assert set(drawn) <= set(range(1000))
    assert drawn[0] > 1_500
    halves = [sum(count for rank, count in drawn.items() if low <= rank < high) for low, high in ((0, 31), (31, 1000))]
    assert 0.8 < halves[0] / halves[1] < 1.25


@pytest.mark.parametrize("count", [1, 7, 1000, 600_000])
def test_a_name_leads_back_to_its_site(count: int):
    names = Names(3, count)
    chosen = range(0, count, max(1, count // 500))
    labels = [names.label(site) for site in chosen]
    assert [names.site(label) for label in labels] == list(chosen)
    assert len(set(labels)) == len(labels)
    assert names.site("nosuchname") is None
    assert names.site("") is None
    assert names.site("zz" * names.syllables) is None


@pytest.mark.parametrize(("count", "each"), [(1, 1), (6, 1), (30, 3), (64, 1)])
def test_a_pattern_counts_as_if_it_had_looked(count: int, each: int):
    pattern = Pattern(11, count, each)
    for value in range(count):
        having = [item for item in range(5 * SPAN) if value in pattern.of(item)]
        assert having, "every value occurs"
        assert [pattern.nth(value, place) for place in range(len(having))] == having
        for items in (0, 1, 17, SPAN, 3 * SPAN + 5):
            assert pattern.count(value, items) == sum(item < items for item in having)


def test_days_are_those_of_the_calendar():
    start = datetime(1900, 1, 1, tzinfo=UTC)
    for step in range(0, 80_000, 37):
        moment = start + timedelta(days=step)
        number = int(moment.timestamp()) // DAY
        assert day(number) == (f"{moment:%Y}", f"{moment:%m}", f"{moment:%d}")
        assert day_number(moment.year, moment.month, moment.day) == number
    assert day_number(2023, 2, 29) is None
    assert day_number(2024, 2, 29) is not None
    assert day_number(2024, 13, 1) is None
    assert month_days(2024, 12)[1] == month_days(2025, 1)[0]


@pytest.mark.parametrize("kind", KINDS)
def test_items_are_counted_as_they_are_born(kind: str):
    site = small(kind).site(0)
    born = [site.born(number) for number in range(40)]
    assert born == sorted(born)
    assert born[0] >= site.launch
    for number, moment in enumerate(born):
        assert site.count(moment) == number + 1
        assert site.count(moment - 1) == number
    assert site.count(site.launch - 1) == 0
    assert abs(site.count(site.web.start) - site.size) <= 1


def test_sizes_follow_zipf_and_add_up():
    web = Web(load_web(hosts=2000, pages=200_000, kinds={"blog": 1}))
    sites = [web.site(index) for index in range(2000)]
    urls = [site.size * site.kind.urls_per_item for site in sites]
    assert urls == sorted(urls, reverse=True)
    assert urls[0] / urls[9] == pytest.approx(10, rel=0.05)
    assert urls[9] / urls[99] == pytest.approx(10, rel=0.1)
    assert sum(urls) == pytest.approx(200_000, rel=0.1)


def test_a_million_hosts_are_no_trouble():
    web = Web(load_web(hosts=3_000_000, pages=30_000_000))
    for index in (0, 12_345, 2_999_999):
        site = web.site(index)
        assert site_at(web, site.host).index == index
    assert web.find("www.nonsense.test") is None


def test_the_mix_is_as_asked():
    web = Web(load_web(hosts=4096, pages=40_960, kinds={"news": 1, "wiki": 3}, languages={"de": 1, "en": 1}))
    sites = [web.site(index) for index in range(4096)]
    kinds, codes = Counter(site.kind.name for site in sites), Counter(site.code for site in sites)
    assert kinds["wiki"] / kinds["news"] == pytest.approx(3, rel=0.15)
    assert codes["de"] == codes["en"]
    own = sum(site.manner.www for site in sites) / 4096
    assert 0.42 < own < 0.48


def test_every_language_has_its_place():
    for seed in (1, 2, 3):
        web = Web(load_web(hosts=100, pages=1000, seed=seed))
        assert {web.site(index).code for index in range(64)} == set(languages())


def test_calm_takes_away_trouble_and_nothing_else():
    wild, calm = (Web(load_web(hosts=3000, pages=30_000, calm=each)) for each in (False, True))
    plain = Manner()
    for index in range(3000):
        one, other = wild.site(index).manner, calm.site(index).manner
        assert (other.latency_ms, other.failing, other.limit, other.silent, other.tls) == ((0, 0), 0, 0, "", "good")
        for name in ("www", "other", "soft404", "sessions", "legacy", "declared", "gzip", "validators", "hrefs"):
            assert getattr(one, name) == getattr(other, name)
        assert other.robots == (one.robots if one.robots != "broken" else plain.robots)


def test_neighbours_are_known_and_speak_the_language():
    web = Web(load_web(hosts=5000, pages=50_000))
    site = web.site(100)
    found = [web.neighbour(site, *numbers(n, 2)) for n in range(2000)]
    assert sum(other.code == site.code for other in found) / 2000 > 0.7
    assert sum(other.index < 500 for other in found) / 2000 > 0.5
    assert max(other.index for other in found) > 2500


def test_lives_keep_their_shares_and_order():
    kind = small("blog").site(0).kind
    shares = Fates(edited=300_000, moved=100_000, deleted=50_000)
    lives = [life(kind, key_of(0, n), 1_000_000_000, shares) for n in range(20_000)]
    assert sum(each.moved < NEVER for each in lives) / 20_000 == pytest.approx(0.1, abs=0.01)
    assert sum(each.deleted < NEVER for each in lives) / 20_000 == pytest.approx(0.05, abs=0.01)
    assert sum(bool(each.edits) for each in lives) / 20_000 == pytest.approx(0.3, abs=0.02)
    for number, each in enumerate(lives):
        assert restless(key_of(0, number), shares) == (min(each.moved, each.deleted) < NEVER)
        assert each.edits == tuple(sorted(each.edits))
        times = [each.born, *each.edits, each.moved, each.deleted]
        assert all(time >= each.born for time in times)
        for moment in each.edits:
            assert each.version(moment) == each.version(moment - 1) + 1
            assert each.changed(moment) == moment
        assert each.changes(each.born - 1, NEVER) == sorted({t for t in times if t < NEVER})


def test_steady_edits_go_on_for_ever():
    kind = small("wiki").site(0).kind
    lives = [life(kind, key_of(1, n), 1_000_000_000, Fates(1_000_000, 0, 0)) for n in range(500)]
    for each in lives:
        assert each.pace >= DAY
        later = each.born + 10 * each.pace + 5
        assert each.version(later) == 10
        assert each.changed(later) == later - 5
        assert each.changes(each.born, later) == [each.born + n * each.pace for n in range(1, 11)]
