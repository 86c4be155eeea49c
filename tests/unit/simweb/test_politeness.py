from __future__ import annotations

import json
from pathlib import Path

import pytest

from gossamer.errors import UsageError
from gossamer.simweb.serving.judge import Rules, judge
from gossamer.simweb.serving.politeness import in_order, judge_file, main, text
from tests.unit.simweb.loglines import BEGIN, broken, close, request, robots, written


def test_lines_are_judged_in_order_of_start(tmp_path):
    slow = robots(took=3)
    log = written(tmp_path / "log", [request(5), slow, close(7), request(6)])
    assert [entry and entry.start for entry in in_order(log)] == [BEGIN, BEGIN + 5, BEGIN + 6, BEGIN + 7]
    assert broken(judge_file(log, Rules())) == {}


GARBAGE = {
    "blank": "\n",
    "words": "not a line of ours\n",
    "columns": "1767225600.0\t1767225600.0\t1\n",
    "time": "x" + "\t1" * 15 + "\n",
    "no number": "nan" + "\t1" * 15 + "\n",
    "too late": "1e300\t2e300" + "\t1" * 14 + "\n",
    "status": "1767225600.0\t1767225600.0\t1\tc\ta\thttp\th\tGET\t/\tOK\t1\titem\t1\t0\t0\tbot\n",
    "ends before": "1767225600.0\t1767225599.0\t1\tc\ta\thttp\th\tGET\t/\t200\t1\titem\t1\t0\t0\tbot\n",
    "long wait": "1767225600.0\t1767225600.0\t1\tc\ta\thttp\th\tGET\t/\t200\t1\titem\t1\t0\t" + "9" * 400 + "\tbot\n",
    "bytes": "\udcff\udcfe\n",
}


@pytest.mark.parametrize("disease", GARBAGE)
def test_garbage_is_counted(tmp_path, disease):
    log = written(tmp_path / "log", [robots(), request(2)])
    with log.open("ab") as file:
        file.write(GARBAGE[disease].encode("utf-8", "surrogateescape") * 2)
    report = judge_file(log, Rules())
    assert (report.requests, report.unreadable, report.violations) == (2, 2, 0)


def test_a_cut_last_line_is_garbage(tmp_path):
    log = written(tmp_path / "log", [robots(), request(2)])
    log.write_bytes(log.read_bytes()[:-20])
    report = judge_file(log, Rules())
    assert (report.requests, report.unreadable) == (1, 1)


def test_logs_that_were_joined_have_two_headings(tmp_path):
    log = written(tmp_path / "log", [robots()])
    log.write_bytes(log.read_bytes() * 2)
    assert judge_file(log, Rules()).unreadable == 0


def test_what_is_no_log_is_refused(tmp_path):
    (tmp_path / "log").write_text("<html>\n</html>\n")
    with pytest.raises(UsageError, match="is no access log"):
        judge_file(tmp_path / "log", Rules())


# The program


def run(capsys, *arguments: str | Path) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_the_exit_code_tells(tmp_path, capsys):
    log = written(tmp_path / "log", [robots(), request(2), request(2.5, "/x", status=503)])
    code, out, _ = run(capsys, log)
    assert code == 1
    assert "gap                    1" in out
    assert "2026-01-01T00:00:02.500Z  http://a.test/x  0.500 s, not 1.000 s  after http://a.test/ at" in out
    code, out, _ = run(capsys, log, "--delay", "0.5", "--from", "start")
    assert code == 0
    assert out.endswith("no violations\n")


def test_rules_can_be_given(tmp_path, capsys):
    log = written(tmp_path / "log", [robots(), request(1.1, connection=2), robots(1.2, host="b.test", connection=3)])
    assert run(capsys, log, "--connections", "2")[0] == 0
    assert run(capsys, log, "--connections", "2", "--per-address", "2")[0] == 1
    assert run(capsys, log, "--connections", "2", "--from", "end", "--tolerance", "0")[0] == 0
    assert run(capsys, log, "--agent", "nobody")[0] == 0


def test_it_speaks_json(tmp_path, capsys):
    log = written(tmp_path / "log", [robots(), request(0.5, agent="-")])
    code, out, _ = run(capsys, log, "--json")
    report = json.loads(out)
    assert code == 1
    assert {rule: verdict["violations"] for rule, verdict in report["verdicts"].items() if verdict["violations"]} == {
        "gap": 1,
        "agent": 1,
    }
    assert report["verdicts"]["gap"]["worst"][0]["before"] == "http://a.test/robots.txt"


def test_an_unreadable_log_is_a_usage_error(tmp_path, capsys):
    for path in (tmp_path / "absent", tmp_path):
        code, _, err = run(capsys, path)
        assert code == 2
        assert err.startswith("cannot read the access log")
        assert err.count("\n") == 1


@pytest.mark.parametrize(
    "wrong", [["--delay", "-1"], ["--delay", "nan"], ["--connections", "x"], ["--from", "middle"], []]
)
def test_usage_errors(tmp_path, capsys, wrong):
    log = [str(written(tmp_path / "log", []))] if wrong else []
    with pytest.raises(SystemExit) as left:
        main([*log, *wrong])
    assert left.value.code == 2


def test_an_empty_log_is_told_of(tmp_path, capsys):
    code, out, _ = run(capsys, written(tmp_path / "log", []))
    assert code == 0
    assert out.startswith("0 requests to 0 hosts")
    (tmp_path / "log").write_text("")
    assert run(capsys, tmp_path / "log")[0] == 0


def test_the_text_names_what_was_not_judged():
    report = judge([None, robots(), request(2, agent="curl")], Rules(agent="bot"))
    assert "1 requests by other agents left out\n1 lines cannot be read\n" in text(report)
