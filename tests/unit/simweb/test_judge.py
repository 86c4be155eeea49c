from __future__ import annotations

from typing import Any

import pytest

from gossamer.simweb.serving.accesslog import Entry
from gossamer.simweb.serving.judge import RULES, Rules, judge
from tests.unit.simweb.loglines import BEGIN, HOST, broken, close, judged, request, robots


def test_a_polite_crawler_breaks_no_rule():
    report = judge([robots(), request(1), request(2, "/x"), close(2.5)])
    assert set(report.verdicts) == set(RULES)
    assert broken(report) == {}
    assert (report.requests, report.hosts, report.violations) == (3, 1, 0)
    assert report.last - report.first == pytest.approx(2.1)


def test_an_empty_log_breaks_no_rule():
    report = judge([])
    assert (report.requests, report.violations, report.connections) == (0, 0, (0, ""))


# The gap between requests


@pytest.mark.parametrize(("gap", "found"), [(1, {}), (0.95, {}), (0.949, {"gap": 1}), (0, {"gap": 1, "underway": 1})])
def test_requests_keep_their_distance(gap, found):
    assert judged(robots(), request(5), request(5 + gap, "/x")) == found


def test_the_tolerance_can_be_none():
    assert judged(robots(), request(1), tolerance=0) == {}
    assert judged(robots(), request(0.99999), tolerance=0) == {"gap": 1}


def test_distance_may_be_asked_for_from_the_end():
    entries = [robots(), request(1.2, took=0.5), request(2.3)]  # 0.6 s after the end
    assert judged(*entries) == {}
    assert judged(*entries, since="end") == {"gap": 1}
    assert judged(*entries, since="end", delay=0.6) == {}


def test_from_the_end_means_the_end_of_the_last_answer():
    entries = [robots(), request(2, took=5), request(3.5, connection=2), request(6, connection=2)]
    report = judge(entries, Rules(since="end", connections=0))
    assert broken(report) == {"gap": 2}
    assert [round(one.found or 0, 3) for one in report.verdicts["gap"].worst] == [-3.5, -1]


@pytest.mark.parametrize(("gap", "found"), [(10, {}), (9.9, {"gap": 1})])
def test_a_crawl_delay_counts_if_it_is_longer(gap, found):
    assert judged(robots(delay=10), request(20, delay=10), request(20 + gap, "/x", delay=10)) == found


def test_a_crawl_delay_does_not_shorten_the_delay():
    assert judged(robots(), request(10, delay=1), request(11, delay=1), delay=2) == {"gap": 1}


def test_a_crawl_delay_is_not_known_before_robots_txt_is_read():
    moved = request(1, "/robots-rules.txt", page="robots", delay=10)
    assert judged(robots(status=301, delay=10), moved, request(11, delay=10)) == {}
    assert judged(robots(status=301, delay=10), moved, request(10, delay=10)) == {"gap": 1}


def test_requests_of_every_kind_keep_their_distance():
    others = [
        request(0.5, "/robots-rules.txt", page="robots"),
        request(1, "/sitemap.xml", page="sitemap"),
        request(1.5, "/old", page="redirect", status=301),
        request(2, "/new"),
        request(2.5, "/gone", status=404, method="HEAD"),
        request(3, scheme="https"),
    ]
    assert judged(robots(), *others)["gap"] == 6


def test_hosts_do_not_wait_for_each_other():
    others = [robots(host="b.test", connection=2), request(1.1, host="b.test", connection=2)]
    assert judged(robots(), request(1), *others) == {}


# The same URL once more


@pytest.mark.parametrize("status", [0, 500, 503])
def test_a_retry_that_comes_too_soon_is_counted_as_such_too(status):
    failed = request(1, "/x", status=status)
    assert judged(robots(), failed, request(1.5, "/x")) == {"gap": 1, "retry": 1}
    assert judged(robots(), failed, request(1.95, "/x")) == {}


def test_other_answers_and_other_urls_make_no_retry():
    assert judged(robots(), request(1, "/x", status=404), request(1.5, "/x")) == {"gap": 1}
    assert judged(robots(), request(1, "/x", status=500), request(1.5, "/y")) == {"gap": 1}


def test_a_request_beside_the_one_that_will_fail_is_no_retry():
    assert judged(robots(), request(1, "/x", status=500, took=0.8), request(1.5, "/x")) == {"gap": 1, "underway": 1}


def test_failures_are_not_remembered_for_ever():
    failed = [request(2 + number, f"/{number}", status=500) for number in range(1000)]
    assert judged(robots(), *failed, request(1001.5, "/999")) == {"gap": 1, "retry": 1}


# Connections and requests under way


def two_connections(first_ends: float, **other: Any) -> list[Entry]:
    return [robots(), request(3, "/x", connection=2, **other), close(first_ends, 1), close(9, 2)]


@pytest.mark.parametrize(
    ("ends", "found"), [(2, {}), (3, {}), (3.05, {}), (3.051, {"connections": 1}), (8, {"connections": 1})]
)
def test_one_connection_at_a_time(ends, found):
    assert judged(*two_connections(ends)) == found


def test_a_connection_that_works_is_not_one_that_is_closing():
    busy = request(2.9, "/y", took=0.12)
    assert judged(*two_connections(3.03), busy, delay=0.05) == {"connections": 1, "underway": 1}
    assert judged(*two_connections(3.03), busy._replace(end=BEGIN + 2.99), delay=0.05) == {}


def test_a_connection_without_an_end_is_open():
    assert judged(robots(), request(3, connection=2)) == {"connections": 1}


def test_connections_beside_each_other_can_be_allowed():
    many = [request(2 + number, connection=2 + number) for number in range(3)]
    assert judged(robots(), *many, connections=4) == {}
    assert judged(robots(), *many, connections=3) == {"connections": 1}
    assert judged(robots(), *many, connections=0) == {}


def test_a_connection_counts_for_a_host_from_its_first_request_to_it():
    through_proxy = [robots(2, host="b.test"), request(3, host="b.test"), close(4)]
    assert judged(robots(), *through_proxy, robots(5, host="b.test", connection=2)) == {}
    assert judged(robots(), *through_proxy, request(3.5, connection=2)) == {"connections": 1}


@pytest.mark.parametrize(("took", "found"), [(1, {}), (1.001, {"underway": 1})])
def test_one_request_under_way(took, found):
    assert judged(robots(), request(2, took=took), request(3, "/x")) == found


def test_requests_under_way_can_be_allowed():
    many = [request(2 + number, took=9, connection=number) for number in range(1, 4)]
    assert judged(robots(), *many, connections=3) == {}
    assert judged(robots(), *many, connections=2) == {"connections": 1, "underway": 1}


def test_hosts_at_one_address_share_its_connections():
    hosts = [robots(number, host=f"{number}.test", connection=number) for number in range(3)]
    assert judged(*hosts) == {}
    assert judged(*hosts, per_address=3) == {}
    assert judged(*hosts, per_address=2) == {"address": 1}
    elsewhere = [entry._replace(address=f"127.0.0.{entry.connection}") for entry in hosts]
    assert judged(*elsewhere, per_address=1) == {}


# robots.txt


def test_forbidden_paths():
    assert judged(robots(), request(1, "/private", allowed=False)) == {"disallowed": 1}


def test_nothing_is_asked_for_before_robots_txt():
    assert judged(request(0)) == {"robots": 1}
    assert judged(request(0), robots(1), request(2)) == {"robots": 1}


@pytest.mark.parametrize(("at", "found"), [(2, {}), (1.9, {"robots": 1, "underway": 1})])
def test_robots_txt_must_have_been_answered(at, found):
    assert judged(robots(took=2), request(at, "/x")) == found


@pytest.mark.parametrize(
    ("status", "found"), [(200, {}), (404, {}), (403, {}), (500, {"robots": 1}), (0, {"robots": 1})]
)
def test_an_answer_to_robots_txt_is_one_that_says_what_is_allowed(status, found):
    assert judged(robots(status=status), request(2)) == found


def test_a_moved_robots_txt_is_answered_where_it_is():
    moved = robots(status=301)
    assert judged(moved, request(2)) == {"robots": 1}
    assert judged(moved, request(2, "/robots-rules.txt", page="robots"), request(4)) == {}
    assert judged(moved._replace(page="redirect"), request(2)) == {}  # it is at another origin


def test_each_origin_has_its_own_robots_txt():
    assert judged(robots(), request(2, scheme="https")) == {"robots": 1}
    assert judged(robots(), request(2, host="www.a.test", connection=2)) == {"robots": 1}
    assert judged(robots(), robots(2, scheme="https"), request(4, scheme="https")) == {}


# Retry-After and the User-Agent


@pytest.mark.parametrize(("at", "found"), [(12.1, {}), (12.05, {}), (12.04, {"wait": 1})])
def test_a_wait_is_waited_for(at, found):
    asked = request(2, "/x", status=429, wait=10)  # its answer ends 0.1 s later
    assert judged(robots(), asked, request(at, "/y")) == found


def test_who_could_not_know_did_not_have_to_wait():
    asked = request(2, "/x", status=503, wait=10, took=2)
    assert judged(robots(), asked, request(3, "/y"), connections=0) == {}
    assert judged(robots(), asked, request(3, "/y"), request(4.5, "/z"), connections=0) == {"wait": 1}


def test_the_longest_wait_counts():
    waits = [request(2, "/x", status=503, wait=20), request(3, "/y", status=503, wait=1)]
    report = judge([robots(), *waits, request(10)])
    assert broken(report) == {"wait": 2}
    worst = report.verdicts["wait"].worst
    assert [one.before for one in worst] == ["http://a.test/x"] * 2
    assert [one.needed for one in worst] == [20, 20]


@pytest.mark.parametrize("agent", ["-", ""])
def test_a_crawler_says_who_it_is(agent):
    assert judged(robots(), request(2, agent=agent)) == {"agent": 1}


def test_others_can_be_left_out():
    curious = request(1.5, "/secret", allowed=False, agent="curl/8", connection=2)
    report = judge([robots(), curious, request(2), request(4, agent="-")], Rules(agent="bot/"))
    assert broken(report) == {"agent": 1}
    assert (report.requests, report.left_out) == (3, 1)


# The report


def test_the_worst_come_first_and_only_ten():
    gaps = [0.5 + 0.02 * number for number in range(20)]
    ends = [sum(gaps[: number + 1]) for number in range(20)]
    verdict = judge([robots(), *(request(end) for end in ends)]).verdicts["gap"]
    assert verdict.violations == 20
    assert [round(one.found or 0, 2) for one in verdict.worst] == [round(gap, 2) for gap in gaps[:10]]


def test_of_equals_the_first_are_shown():
    verdict = judge([robots(), *(request(2 + n, f"/{n}", allowed=False) for n in range(30))]).verdicts["disallowed"]
    assert [one.url for one in verdict.worst] == [f"http://a.test/{number}" for number in range(10)]


def test_the_hosts_with_the_smallest_gaps_are_shown():
    entries = [
        robots(10 * number + at, host=f"{number}.test", connection=number)
        for number in range(8)
        for at in (0, 1 + number / 10, 5)
    ]
    report = judge(entries)
    assert [line.host for line in report.closest] == [f"{number}.test" for number in range(5)]
    first = report.closest[0]
    assert (first.requests, first.connections, first.underway) == (3, 1, 1)
    assert (first.smallest_gap, first.median_gap) == pytest.approx((1, 2.5))


def test_the_most_at_a_time_is_told():
    report = judge([robots(took=9), request(1, connection=2, took=9), request(2, connection=3, took=9)])
    assert report.connections == report.underway == (3, HOST)


def test_disorder_is_noticed():
    with pytest.raises(ValueError, match="not in order"):
        judge([request(2), request(1)])


def test_a_robots_txt_at_a_sites_other_name_is_awaited():
    moved, there = robots(status=301), robots(1.5, host=f"www.{HOST}", connection=2)
    assert judged(moved, request(2)) == {"robots": 1}
    assert judged(moved, there, request(2)) == {}
