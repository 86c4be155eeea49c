"""The truth: its tables against what the web answers, at any moment."""

from __future__ import annotations

import json
from collections import deque
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from gossamer.errors import UsageError
from gossamer.simweb.config import WebConfig, load_web
from gossamer.simweb.pages.find import look
from gossamer.simweb.pages.respond import respond
from gossamer.simweb.pages.robots import allowed
from gossamer.simweb.sites.draw import numbers
from gossamer.simweb.truth import tables
from gossamer.simweb.truth.survey import links_on
from gossamer.simweb.truth.tables import Span, write_truth
from gossamer.simweb.web import Web
from tests.unit.simweb.webs import CALM, DAY, links_of, site_at

WILD = CALM | {"sessions": 0.2, "mirror": 0.4, "soft404": 0.3, "says-gone": 0.3, "base-links": 0.3, "keeps": 0.4}


def rows(folder: Path, table: str) -> list[dict]:
    return [row for part in sorted((folder / table).glob("*.parquet")) for row in pq.read_table(part).to_pylist()]


def seconds(moment: datetime | None) -> int:
    """As Unix time; no end is the end of time."""
    return 1 << 62 if moment is None else int(moment.timestamp())


@pytest.fixture(scope="module")
def config() -> WebConfig:
    return load_web(hosts=14, pages=500, traits=WILD)


@pytest.fixture(scope="module")
def month(config: WebConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The truth of sixty days."""
    folder = tmp_path_factory.mktemp("truth") / "month"
    start = int(config.start.timestamp())
    write_truth(config, folder, Span(start, start + 60 * DAY), workers=1)
    return folder


def split(url: str) -> tuple[str, str, str]:
    scheme, _, rest = url.partition("://")
    host, _, path = rest.partition("/")
    return scheme, host, f"/{path}"


def test_states_hold_between_their_times(config: WebConfig, month: Path):
    web = Web(config)
    start = int(config.start.timestamp())
    states: dict[str, list[dict]] = {}
    for row in rows(month, "states"):
        states.setdefault(row["url"], []).append(row)
    assert {row["url"] for row in rows(month, "urls")} == set(states)
    assert sum(len(found) for found in states.values()) > len(states) * 1.2
    for place, (url, found) in enumerate(states.items()):
        found.sort(key=lambda row: row["valid_from"])
        assert seconds(found[0]["valid_from"]) == start
        assert found[-1]["valid_to"] is None
        assert all(one["valid_to"] == other["valid_from"] for one, other in pairwise(found))
        for number in numbers(place, 4):
            moment = start + number % (60 * DAY)
            row = next(r for r in found if seconds(r["valid_from"]) <= moment < seconds(r["valid_to"]))
            now = look(web, *split(url), moment)
            assert (row["status"], row["target"], row["soft"]) == (now.status, now.target, now.soft), (url, moment)
            if now.status == 200:
                assert seconds(row["changed"]) == now.since


def test_links_hold_between_their_times(config: WebConfig, month: Path):
    web = Web(config)
    start = int(config.start.timestamp())
    links: dict[str, list[dict]] = {}
    for row in rows(month, "links"):
        links.setdefault(row["src"], []).append(row)
    changing = [src for src, found in links.items() if any(row["valid_to"] for row in found)]
    assert len(changing) > 20
    for place, src in enumerate([*changing[:150], *list(links)[::20]]):
        scheme, host, target = split(src)
        moment = start + numbers(place, 1)[0] % (60 * DAY)
        now = look(web, scheme, host, target, moment)
        told = {
            (row["dst"], row["anchor"], row["kind"], row["nofollow"])
            for row in links[src]
            if seconds(row["valid_from"]) <= moment < seconds(row["valid_to"])
        }
        assert told == set(links_on(site_at(web, host), f"{scheme}://{host}", now))


def test_every_link_leads_to_a_known_url(month: Path):
    known = {row["url"] for row in rows(month, "urls")}
    lost = {row["dst"] for row in rows(month, "links") if row["kind"] != "form"} - known
    assert not lost
    assert not {row["target"] for row in rows(month, "states") if row["target"]} - known


def test_every_url_is_told_once(month: Path):
    urls = [row["url"] for row in rows(month, "urls")]
    assert len(urls) == len(set(urls))


def test_depths_are_those_of_a_patient_walk(config: WebConfig, month: Path):
    start = config.start
    urls = {row["url"]: row for row in rows(month, "urls")}
    edges: dict[str, set[str]] = {}
    for row in rows(month, "links"):
        if (
            row["valid_from"] <= start
            and (row["valid_to"] is None or row["valid_to"] > start)
            and row["kind"] in ("a", "img", "canonical", "alternate")
        ):
            edges.setdefault(row["src"], set()).add(row["dst"])
    for row in rows(month, "states"):
        if row["target"] and row["valid_from"] <= start:
            edges.setdefault(row["url"], set()).add(row["target"])
    seeds = (month / "seeds.txt").read_text().split()
    assert len(seeds) == 10
    for column, may in (("depth", lambda _: True), ("depth_allowed", lambda url: urls[url]["allowed"])):
        depth = {seed: 0 for seed in seeds if may(seed)}
        queue = deque(depth)
        while queue:
            url = queue.popleft()
            for other in edges.get(url, ()):
                if other in urls and other not in depth and may(other):
                    depth[other] = depth[url] + 1
                    queue.append(other)
        assert {url: row[column] for url, row in urls.items() if row[column] is not None} == depth


def test_duplicates_say_the_same_and_others_do_not(config: WebConfig, month: Path):
    web = Web(config)
    start = int(config.start.timestamp())
    status = {row["url"]: row for row in rows(month, "states") if seconds(row["valid_from"]) == start}
    clusters: dict[int, list[str]] = {}
    for row in rows(month, "urls"):
        if (
            row["duplicate"] is not None
            and row["format"] == "html"
            and status[row["url"]]["status"] == 200
            and not status[row["url"]]["soft"]
        ):
            clusters.setdefault(row["duplicate"], []).append(row["url"])
    several = [urls for urls in clusters.values() if len(urls) > 1]
    assert len(several) > 30
    for urls in several[:80]:
        texts = {_words(web, url, start) for url in urls[:4]}
        assert len(texts) == 1, urls[:4]


def _words(web: Web, url: str, moment: int) -> str:
    scheme, host, target = split(url)
    answer = respond(web, scheme, host, target, moment)
    return "".join(links_of(url, answer.body.decode(site_at(web, host).charset)).text)


def test_facts_about_urls(config: WebConfig, month: Path):
    web = Web(config)
    urls = rows(month, "urls")
    for row in urls[::11]:
        _, host, target = split(row["url"])
        site = site_at(web, host)
        assert row["allowed"] == allowed(site, target)
        assert (row["kind"], row["language"], row["site"]) == (site.kind.name, site.code, site.index)
    assert {row["kind"] for row in urls if row["trap"]} >= {"shop"}
    assert any(row["trap"] and "sid=" in row["url"] for row in urls)
    hosts = rows(month, "hosts")
    assert [row["rank"] for row in hosts] == list(range(1, 15))
    about = json.loads((month / "truth.json").read_text())
    assert about["rows"] == {
        "hosts": 14,
        "urls": len(urls),
        "states": len(rows(month, "states")),
        "links": len(rows(month, "links")),
    }


def test_an_instant_is_the_start_of_a_time_and_two_workers_say_what_one_says(
    config: WebConfig, month: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    start = int(config.start.timestamp())
    monkeypatch.setattr(tables, "SITES_PER_PART", 4)
    write_truth(config, tmp_path / "now", Span(start, start), workers=2)
    assert len(list((tmp_path / "now" / "states").glob("*.parquet"))) >= 4
    now = {row["url"]: (row["status"], row["target"]) for row in rows(tmp_path / "now", "states")}
    then = {
        row["url"]: (row["status"], row["target"])
        for row in rows(month, "states")
        if seconds(row["valid_from"]) == start
    }
    assert now.items() <= then.items()
    only_later = [status for url, (status, _) in then.items() if url not in now]
    assert only_later
    assert set(only_later) <= {200, 301, 302, 404}


def test_old_folders_and_turned_times_are_refused(config: WebConfig, tmp_path: Path):
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "file").touch()
    with pytest.raises(UsageError, match="not empty"):
        write_truth(config, tmp_path / "old", Span(1, 1))
    with pytest.raises(UsageError, match="end after it starts"):
        write_truth(config, tmp_path / "new", Span(2, 1))
    assert not (tmp_path / "new").exists()
