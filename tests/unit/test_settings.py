"""Settings: where values come from, which of them wins, and what is refused."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest

from gossamer.errors import SettingsError
from gossamer.settings import FILE, HostSettings, Settings, load_settings, setting, template, toml_value, value_of, walk


def load(text: str = "", *sets: str, **environment: str) -> Any:
    return load_settings(text, environment=environment, sets=sets)


def test_defaults():
    found = load()
    assert found.settings == Settings()
    assert set(found.origin.values()) == {"default"}


def test_toml_gives_values_and_is_their_origin():
    found = load("[engine]\nworkers = 3\n[storage]\ncompact_at = 1\n")
    assert found.settings.engine.workers == 3
    assert found.settings.storage.compact_at == 1.0
    assert found.origin["engine.workers"] == FILE
    assert found.origin["engine.memory_mb"] == "default"


def test_a_table_of_toml_can_be_one_setting():
    found = load("[engine.spark_conf]\n'spark.executor.memory' = '2g'\n")
    assert found.settings.engine.spark_conf == {"spark.executor.memory": "2g"}


def test_environment_beats_toml_and_set_beats_both():
    text = "[engine]\nworkers = 1\nmemory_mb = 100\nscratch = '/a'\n"
    found = load(
        text, "engine.scratch=/c", GOSSAMER_ENGINE__MEMORY_MB="200", GOSSAMER_ENGINE__SCRATCH="/b", GOSSAMER_CRAWL="/x"
    )
    assert (found.settings.engine.workers, found.settings.engine.memory_mb) == (1, 200)
    assert found.settings.engine.scratch == "/c"
    assert found.origin["engine.workers"] == FILE
    assert found.origin["engine.memory_mb"] == "environment variable GOSSAMER_ENGINE__MEMORY_MB"
    assert found.origin["engine.scratch"] == "--set"


def test_the_last_set_wins():
    assert load("", "engine.workers=1", "engine.workers = 2").settings.engine.workers == 2


@pytest.mark.parametrize(
    ("spelled", "value"),
    [
        ("plugins.load=one", ["one"]),
        ("plugins.load=one, two:three", ["one", "two:three"]),
        ('plugins.load=["one", "two"]', ["one", "two"]),
        ("engine.scratch=true", "true"),
        ("engine.scratch=a=b", "a=b"),
        ("engine.spark_conf={a = 'b'}", {"a": "b"}),
        ("engine.kind=spark", "spark"),
        ("storage.compact_at=0.5", 0.5),
    ],
)
def test_values_given_as_text(spelled: str, value: Any):
    assert value_of(load("", spelled).settings, spelled.split("=", maxsplit=1)[0]) == value


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"text": "[engine]\nworker = 3"},
            "gossamer.toml: unknown setting engine.worker; did you mean engine.workers?",
        ),
        ({"text": "[nothing.like]\nit = 1"}, "gossamer.toml: unknown setting nothing; see `gossamer config show`"),
        ({"text": "engine = 3"}, "gossamer.toml: unknown setting engine;"),
        ({"sets": ["engine.worker=3"]}, "--set: unknown setting engine.worker; did you mean engine.workers?"),
        ({"sets": ["engine.workers"]}, "--set engine.workers: write it as key=value"),
        (
            {"environment": {"GOSSAMER_ENGINE_WORKERS": "3"}},
            "environment variable GOSSAMER_ENGINE_WORKERS: unknown setting engine_workers; did you mean engine.workers?",
        ),
        (
            {"text": "[engine]\nworkers = 'two'"},
            "gossamer.toml: engine.workers = 'two' does not fit: Expected int, got str",
        ),
        ({"sets": ["engine.workers=true"]}, "Expected int, got bool; the default is -1"),
        ({"sets": ["engine.kind=flink"]}, 'choose "embedded" or "spark"'),
        ({"sets": ["engine.memory_mb=-1"]}, "engine.memory_mb = -1 is too small; it must be at least 64"),
        ({"sets": ["storage.compact_at=nan"]}, "too small"),
        ({"text": "[engine"}, "gossamer.toml: not valid TOML: "),
        ({"text": "[engine.spark_conf]\na = 1"}, "engine.spark_conf = {'a': 1} does not fit"),
    ],
)
def test_what_is_refused(given: dict[str, Any], said: str):
    with pytest.raises(SettingsError) as error:
        load_settings(**({"environment": {}} | given))
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_the_file_that_is_wrong_is_named():
    for text in ("x = 1", "[x]\ny = 1", "[["):
        with pytest.raises(SettingsError, match=r"^/some/where\.toml: "):
            load_settings(text, "/some/where.toml", environment={})


def test_the_template_changes_nothing():
    assert load(template()).settings == Settings()
    assert set(load(template()).origin.values()) == {"default"}


def test_the_template_uncommented_is_the_defaults():
    lines = template().splitlines()
    keys = {key.rsplit(".", 1)[-1] for key, _, _ in walk()}
    text = "\n".join(line[2:] if line.startswith("# ") and line[2:].split(" =")[0] in keys else line for line in lines)
    found = load(text)
    assert found.settings == Settings()
    assert {key for key, origin in found.origin.items() if origin != FILE} == {"host"}, (
        "every setting stands in the template"
    )
    assert "\n# [[host]]\n" in template()


def test_every_setting_is_explained_and_there_are_few():
    keys = list(walk())
    assert 0 < len(keys) < 80
    assert len({key for key, _, _ in keys}) == len(keys)
    for key, _, doc in keys:
        assert len(doc) > 10, f"{key} needs a sentence"
        assert doc.endswith("."), key


def test_defaults_pass_their_own_checks():
    for key, _, _ in walk():
        text = f"{key} = {toml_value(value_of(Settings(), key))}"
        assert load(text).settings == Settings()


def test_a_default_that_can_change_is_not_shared():
    assert Settings().engine.spark_conf is not Settings().engine.spark_conf
    made = setting([1], "prose")
    assert made.default_factory() == [1]


@pytest.mark.parametrize(
    "value",
    ["", 'quote " and \\ back', "line\nbreak\ttab\x7f\x00", "ünï𝄞", 1, -2.5, True, [], ["a", "b"], {}, {"a b": "c"}],
)
def test_toml_value_is_read_back_equal(value: Any):
    assert tomllib.loads(f"x = {toml_value(value)}")["x"] == value


def test_hosts_are_a_list_of_tables():
    found = load(
        '[[host]]\npattern = "*.a.test"\ndelay_ms = 5\n[[host]]\npattern = "b.test"\nheaders = { X = "1" }'
    ).settings
    assert found.host == [HostSettings("*.a.test", 5), HostSettings("b.test", headers={"X": "1"})]
    with pytest.raises(SettingsError, match=r"unknown setting dealy_ms in \[\[host\]\]; choose from pattern, delay_ms"):
        load('[[host]]\npattern = "a"\ndealy_ms = 5')
    with pytest.raises(SettingsError, match="missing required field pattern"):
        load("[[host]]\ndelay_ms = 5")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("connections = -2", "connections = -2 must be at least 1"),
        ("cap = -1", "cap = -1 must be at least 0"),
        ("delay_ms = -3", "delay_ms = -3 must be from 0"),
        ("delay_ms = 99999999999", "must be from 0 to 86400000"),
        ('proxy = "garbage::::"', "write it as http://host:port"),
        ('headers = { "X-A" = "b\\r\\nX-Evil: 2" }', "is no header"),
        ('headers = { "Bad Name:" = "b" }', "is no header"),
    ],
)
def test_manners_that_make_no_sense_are_refused(line: str, problem: str):
    with pytest.raises(SettingsError, match=problem):
        load(f'[[host]]\npattern = "a.test"\n{line}')
    with pytest.raises(SettingsError, match="pattern must name hosts"):
        load('[[host]]\npattern = ""')
