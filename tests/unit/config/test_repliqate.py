"""The old YAML of repliqate, loaded as it stands."""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from walstream.config import Config, KafkaSinkConfig, SqlSource, load, mask

Load = Callable[..., Config]
Complain = Callable[..., str]

# the example that repliqate ships, as its users have it
EXAMPLE: Final = """\
repliqate:
  name: processes
  statsd_addr: localhost:8125
  redis_addr: localhost:6379
  replication:
    poll_interval_sec: 10
    sql_source:
      uri: sqlite:////tmp/sysmetrics.db
      table: processes
      primary_key: id
      limit: 100
      fields:
        - pid
        - name
        - user
        - command
    kafka_target:
      topic: repliqate-processes
      brokers:
        - 127.0.0.1:9092
"""
SHORTEST: Final = """\
repliqate:
  name: app
  replication:
    poll_interval_sec: 0.5
    sql_source: {uri: "sqlite://", table: t, primary_key: id}
    kafka_target: {topic: rows}
"""


def entry(name: str, **others: str) -> str:
    """Write a list's item; `others` replaces texts."""
    text = SHORTEST.removeprefix("repliqate:\n").replace("app", name)
    for key, value in others.items():
        text = text.replace(key, value)
    return "  -" + text.replace("\n", "\n  ")[1:].rstrip() + "\n"


@pytest.fixture
def old(load_text: Load) -> Load:
    def load_it(text: str, environment: Mapping[str, str] | None = None) -> Config:
        return load_text(text, environment, "old.yaml")

    return load_it


@pytest.fixture
def refused(complaint: Complain) -> Complain:
    def complain(text: str, environment: Mapping[str, str] | None = None) -> str:
        return complaint(text, environment, "old.yaml").partition("old.yaml: ")[2]

    return complain


def parts(config: Config, name: str) -> tuple[SqlSource, KafkaSinkConfig]:
    source, sink = config.sources[name], config.sinks[name]
    assert isinstance(source, SqlSource)
    assert isinstance(sink, KafkaSinkConfig)
    return source, sink


def test_the_old_example_becomes_a_source_and_a_sink(old: Load) -> None:
    source, sink = parts(old(EXAMPLE), "processes")
    assert (source.url, source.poll_interval) == ("sqlite:////tmp/sysmetrics.db", 10)
    assert source.name_in_records("processes") == "processes"
    table = source.tables["processes"]
    assert (table.primary_key, table.limit) == ("id", 100)
    assert table.fields == ["pid", "name", "user", "command"]
    assert (source.sinks, sink.format) == (["processes"], "row")
    assert sink.topic == "repliqate-processes"
    assert sink.producer == {"bootstrap.servers": "127.0.0.1:9092"}
    assert not source.insecure
    assert not sink.insecure


def test_what_it_leaves_out_has_the_old_defaults(old: Load, tmp_path: Path) -> None:
    config = old(SHORTEST)
    source, sink = parts(config, "app")
    assert source.poll_interval == 0.5
    assert (source.tables["t"].fields, source.tables["t"].limit) == ([], 0)
    assert sink.producer == {"bootstrap.servers": "localhost:9092"}
    assert config.state == tmp_path / "state"
    assert config.remarks == ()
    nothing = "primary_key: id, fields: ~, limit: null"
    assert old(SHORTEST.replace("primary_key: id", nothing)) == config


def test_servers_that_have_no_place_here_are_named_with_what_has(old: Load) -> None:
    remarks = dict(old(EXAMPLE).remarks)
    assert remarks.keys() == {"repliqate.redis_addr", "repliqate.statsd_addr"}
    assert "LMDB" in remarks["repliqate.redis_addr"]
    assert "/metrics" in remarks["repliqate.statsd_addr"]


def test_the_printed_form_loads_as_the_same(old: Load, tmp_path: Path) -> None:
    config = old(EXAMPLE)
    printed = tmp_path / "walstream.toml"
    printed.write_text(mask(config))
    assert "repliqate" not in tomllib.loads(printed.read_text())
    again = load(printed, {})
    assert (again.sources, again.sinks) == (config.sources, config.sinks)


def test_a_list_is_several_sources(old: Load, tmp_path: Path) -> None:
    text = f"repliqate:\n{entry('one')}{entry('two', rows='more')}state: elsewhere\n"
    config = old(text)
    assert config.state == tmp_path / "elsewhere"
    assert list(config.sources) == ["one", "two"]
    assert [parts(config, name)[1].topic for name in ("one", "two")] == ["rows", "more"]


def test_a_part_may_stand_beside_replication(old: Load) -> None:
    beside = SHORTEST.replace("    kafka_target", "  kafka_target")
    assert old(beside) == old(SHORTEST)


@pytest.mark.parametrize(
    ("name", "source"),
    [("Sys Metrics.eu", "sys-metrics-eu"), ("A_b-1", "a_b-1"), ("é", "repliqate")],
)
def test_any_name_stays_the_one_in_the_records(
    old: Load, name: str, source: str
) -> None:
    config = old(SHORTEST.replace("app", name))
    assert list(config.sources) == list(config.sinks) == [source]
    assert parts(config, source)[0].name_in_records(source) == name


def test_servers_elsewhere_are_reached_as_before_and_named_at_each_start(
    old: Load,
) -> None:
    text = EXAMPLE.replace("sqlite:////tmp", "mysql+pymysql://u:${env:PW}@db")
    source, sink = parts(old(text, {"PW": "x"}), "processes")
    assert (source.insecure, sink.insecure) == (True, False)
    source, sink = parts(old(EXAMPLE.replace("127.0.0.1", "kafka")), "processes")
    assert (source.insecure, sink.insecure) == (False, True)


def test_verified_servers_need_no_consent(old: Load) -> None:
    text = EXAMPLE.replace("sqlite:////tmp", "mysql+pymysql://u@db")
    text = text.replace("sysmetrics.db", "x?ssl_ca=/ca.pem").replace("127.0.0.1", "k")
    variable = "WALSTREAM__SINKS__PROCESSES__PRODUCER__SECURITY_PROTOCOL"
    source, sink = parts(old(text, {variable: "SASL_SSL"}), "processes")
    assert not source.insecure
    assert not sink.insecure


def test_consent_may_be_taken_back(refused: Complain) -> None:
    text = EXAMPLE.replace("sqlite:////tmp", "mysql://u@db").replace("127.0.0.1", "k")
    overrides = {
        f"WALSTREAM__{part}__PROCESSES__INSECURE": "false"
        for part in ("SOURCES", "SINKS")
    }
    shown = refused(text, overrides)
    assert "repliqate.replication.sql_source.uri: leads to db" in shown
    assert 'producer."security.protocol": k is not this machine' in shown


def test_overrides_take_the_new_keys(old: Load) -> None:
    table = "WALSTREAM__SOURCES__PROCESSES__TABLES__PROCESSES"
    overrides = {
        f"{table}__START": "after:7",
        "WALSTREAM__SINKS__PROCESSES__INSECURE": "false",
        "WALSTREAM__HTTP__LISTEN": "",
    }
    config = old(EXAMPLE, overrides)
    assert parts(config, "processes")[0].tables["processes"].start_after == 7
    assert config.http.listen == ""


@pytest.mark.parametrize(
    "override",
    [
        "WALSTREAM__SOURCES",
        "WALSTREAM__SOURCES__PROCESSES",
        "WALSTREAM__SINKS__PROCESSES__PRODUCER",
        "WALSTREAM__SOURCES__PROCESSES__URL",
    ],
)
def test_an_override_that_breaks_it_is_a_problem(
    refused: Complain, override: str
) -> None:
    assert refused(EXAMPLE, {override: "x"})


def test_a_password_is_shown_nowhere(old: Load, refused: Complain) -> None:
    text = EXAMPLE.replace("sqlite:////tmp", "mysql+pymysql://u:cAn%40rY@127.0.0.1")
    config = old(text)
    assert "cAn" not in mask(config)
    for spelt in ("cAn@rY", "cAn%40rY"):
        assert config.secrets.scrub(f"no {spelt}") == "no ***"
    shown = refused(text.replace("127.0.0.1", "rest@127.0.0.1"))
    assert shown.startswith("repliqate.replication.sql_source.uri: has an @ in its")
    assert "rY" not in shown


SQL = "repliqate.replication.sql_source"


@pytest.mark.parametrize(
    ("written", "instead", "wanted"),
    [
        ("  name: processes", "  nam: processes", "repliqate.nam: is unknown: did you"),
        ("  name: processes\n", "", "repliqate.name: is missing"),
        ("name: processes", "name: ''", "repliqate.name: is empty"),
        ("name: processes", "name: 5", "repliqate.name: write a text in quotes"),
        ("uri:", "url:", f"{SQL}.url: is unknown: did you mean uri?"),
        ("uri:", "url:", f"{SQL}.uri: is missing"),
        ("table: processes", "table: [x]", f"{SQL}.table: write a text in quotes"),
        ("      primary_key: id\n", "", f"{SQL}.primary_key: is missing"),
        ("limit: 100", "limit: many", f'{SQL}.limit: is "many": write a whole number'),
        ("limit: 100", "limit: -1", f"{SQL}.limit: is -1: write a number from 0 on"),
        ("- pid", "- name", f"{SQL}.fields: has an entry twice"),
        ("- pid", "- 5", f"{SQL}.fields[0]: is 5: write a text in quotes"),
        (
            "topic: repliqate-processes",
            "topic: a b",
            'repliqate.replication.kafka_target.topic: "a b" is not a valid template',
        ),
        (
            "    poll_interval_sec: 10\n",
            "",
            "repliqate.replication.poll_interval_sec: is missing",
        ),
        (
            "poll_interval_sec: 10",
            "poll_interval_sec: true",
            "repliqate.replication.poll_interval_sec: write a number of seconds",
        ),
        (
            "poll_interval_sec: 10",
            "poll_interval_sec: 0",
            'repliqate.replication.poll_interval_sec: "0s" is 0: write more',
        ),
        (
            "- 127.0.0.1:9092",
            "- 5",
            "repliqate.replication.kafka_target.brokers: write a list",
        ),
        (
            "brokers:\n        - 127.0.0.1:9092",
            "brokers: []",
            "repliqate.replication.kafka_target.brokers: is empty",
        ),
        (
            "    kafka_target:",
            "    kafka_targets:",
            "repliqate.replication.kafka_targets: is unknown: did you mean kafka_t",
        ),
        (
            "  replication:",
            "  sql_source: {uri: x}\n  replication:",
            f"repliqate.sql_source: is in {SQL[:21]} too: write it once",
        ),
        (
            "repliqate:",
            "sinks: {}\nrepliqate:",
            "sinks: cannot be in one file with repliqate",
        ),
    ],
)
def test_what_is_wrong_is_named_by_the_old_key(
    refused: Complain, written: str, instead: str, wanted: str
) -> None:
    assert written in EXAMPLE
    assert wanted in refused(EXAMPLE.replace(written, instead, 1))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("repliqate: ~", "repliqate: write a table of keys and values"),
        ("repliqate: []", "repliqate: is empty: name at least one"),
        ("repliqate: [5]", "repliqate[0]: write a table"),
        ("repliqate: {replication: 5}", "repliqate.replication: write a table"),
        (
            f"repliqate:\n{entry('a')}{entry('a')}",
            'repliqate[1].name: "a" is also the name of repliqate[0]',
        ),
        (
            f"repliqate:\n{entry('A b')}{entry('a-b')}",
            'repliqate[1].name: "a-b" would be sources.a-b, and so would "A b" of rep',
        ),
        (
            f"repliqate:\n{entry('a')}{entry('b', uri='url')}",
            "repliqate[1].replication.sql_source.url: is unknown",
        ),
        (
            f"repliqate:\n{entry('a')}{entry('b', rows='a b')}",
            "repliqate[1].replication.kafka_target.topic: ",
        ),
    ],
)
def test_another_shape_is_refused(refused: Complain, text: str, wanted: str) -> None:
    assert wanted in refused(text)


def test_other_files_are_left_as_they_are(load_text: Load) -> None:
    config: Any = load_text()
    assert (list(config.sources), config.remarks) == (["app"], ())
