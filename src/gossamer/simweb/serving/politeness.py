"""An access log → the crawler's politeness, as a program of its own: `python -m gossamer.simweb.serving.politeness access.log`.

The log is of one run of the server, which counts connections anew when it starts again. Lines are written when an answer ends; they are put in
order of start by their places in the file, so that the log itself need not fit in memory. Exit code 0: polite; 1: not; 2: cannot be judged.
"""

from __future__ import annotations

import argparse
import math
import mmap
import sys
from array import array
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import numpy as np

from gossamer.errors import UsageError
from gossamer.simweb.serving.accesslog import COLUMNS, Entry, read
from gossamer.simweb.serving.judge import RULES, Report, Rules, Violation, judge

LATEST = 2.5e11  # the year 9892: no later time, nor a longer delay, is one
HEADING = COLUMNS[0].encode() + b"\t"


def judge_file(path: Path, rules: Rules) -> Report:
    """The judgement of a log."""
    try:
        report = judge(in_order(path), rules)
    except OSError as error:
        raise UsageError(f"cannot read the access log {path}: {error.strerror}") from error
    if report.unreadable and not report.requests and not report.left_out:
        raise UsageError(f"{path} is no access log of the simulated web: none of its lines can be read")
    return report


def in_order(path: Path) -> Iterator[Entry | None]:
    """The lines of a log in order of start; None for each that cannot be read."""
    starts, places, lengths = array("d"), array("q"), array("q")
    with path.open("rb") as file:
        place = 0
        for line in file:
            try:
                start = float(line[: line.find(b"\t")])
            except ValueError:
                start = math.nan
            if 0 <= start < LATEST:
                starts.append(start)
                places.append(place)
                lengths.append(len(line))
            elif not line.startswith(HEADING):
                yield None
            place += len(line)
        if starts:
            order = np.argsort(np.frombuffer(starts), kind="stable")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
                for some in range(0, len(order), 4096):
                    for number in order[some : some + 4096].tolist():  # Python's own numbers are quicker to use
                        place = places[number]
                        yield _entry(whole[place : place + lengths[number]])


def _entry(line: bytes) -> Entry | None:
    try:
        entry = read(line.decode("utf-8", "replace"))
    except ValueError:
        return None
    if entry is None or not entry.start <= entry.end < LATEST or max(entry.delay, entry.wait) > LATEST:
        return None
    return entry


def text(report: Report) -> str:
    """The report for people."""
    span = f"{report.last - report.first:,.1f} s from {_moment(report.first)}" if report.requests else "no time"
    lines = [f"{report.requests:,} requests to {report.hosts:,} hosts in {span}"]
    if report.left_out:
        lines.append(f"{report.left_out:,} requests by other agents left out")
    if report.unreadable:
        lines.append(f"{report.unreadable:,} lines cannot be read")
    lines += ["", f"{'rule':12}{'violations':>12}"]
    lines += [f"{rule:12}{report.verdicts[rule].violations:12,}  {about}" for rule, about in RULES.items()]
    for rule, verdict in report.verdicts.items():
        if verdict.violations:
            lines += ["", f"{rule}: the worst {len(verdict.worst)} of {verdict.violations:,}"]
            lines += [
                _case(one, "" if rule in ("connections", "underway", "address") else " s") for one in verdict.worst
            ]
    if report.closest:
        lines += ["", f"{'smallest gap':>12}{'median':>12}{'requests':>10}{'connections':>13}{'under way':>11}  host"]
        lines += [
            f"{one.smallest_gap:10.3f} s{one.median_gap:10.3f} s{one.requests:10,}{one.connections:13}{one.underway:11}  {one.host}"
            for one in report.closest
        ]
    for what, (most, host) in (("connections", report.connections), ("requests under way", report.underway)):
        lines.append(f"most {what} to a host at a time: {most}" + (f" ({host})" if host else ""))
    lines += ["", f"{report.violations:,} violations" if report.violations else "no violations"]
    return "\n".join(lines) + "\n"


def _case(one: Violation, unit: str) -> str:
    parts = [f"  {_moment(one.at)}  {one.url}"]
    if one.found is not None and one.needed is not None:
        parts.append(f"{one.found:.3f} s, not {one.needed:.3f} s" if unit else f"{one.found:g}, not {one.needed:g}")
    if one.before is not None and one.before_at is not None:
        parts.append(f"after {one.before} at {_moment(one.before_at)}")
    return "  ".join(parts)


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def main(arguments: Sequence[str] | None = None) -> int:
    """The program."""
    parser = argparse.ArgumentParser(
        prog="python -m gossamer.simweb.serving.politeness",
        description="Judge a crawler by the simulated web's access log.",
    )
    known = Rules()
    parser.add_argument("log", type=Path, help="the access log of one run of the server")
    parser.add_argument(
        "--delay", type=_seconds, default=known.delay, help="seconds between requests to a host (%(default)s)"
    )
    parser.add_argument(
        "--from",
        dest="since",
        choices=("start", "end"),
        default=known.since,
        help="of the request before (%(default)s)",
    )
    parser.add_argument(
        "--connections", type=_count, default=known.connections, help="to a host at a time; 0: any number (%(default)s)"
    )
    parser.add_argument(
        "--per-address",
        type=_count,
        default=known.per_address,
        help="connections to an address; 0: any number (%(default)s)",
    )
    parser.add_argument(
        "--tolerance", type=_seconds, default=known.tolerance, help="seconds that times may be off (%(default)s)"
    )
    parser.add_argument(
        "--agent", default=known.agent, help="judge only User-Agents that begin so, and requests without one"
    )
    parser.add_argument("--json", action="store_true", help="report as JSON")
    given = vars(parser.parse_args(arguments))
    path, as_json = given.pop("log"), given.pop("json")
    try:
        report = judge_file(path, Rules(**given))
    except UsageError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(msgspec.json.encode(report).decode() + "\n" if as_json else text(report))
    return 1 if report.violations else 0


def _seconds(value: str) -> float:
    number = float(value)
    if not 0 <= number < math.inf:
        raise ValueError
    return number


def _count(value: str) -> int:
    number = int(value)
    if number < 0:
        raise ValueError
    return number


if __name__ == "__main__":
    sys.exit(main())
