"""From files and environment to one Config, or one error that lists it all."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from walstream.config import Config, KafkaSinkConfig, PostgresSource, load, mask
from walstream.config.load import has_default_file
from walstream.errors import ConfigError

Load = Callable[..., Config]
Complain = Callable[..., str]
CANARY = "cAnArY-7f3a"


def source(config: Config, name: str = "app") -> PostgresSource:
    found = config.sources[name]
    assert isinstance(found, PostgresSource)
    return found


def sink(config: Config, name: str = "kafka") -> KafkaSinkConfig:
    found = config.sinks[name]
    assert isinstance(found, KafkaSinkConfig)
    return found


def test_defaults_fill_what_the_file_leaves_out(
    load_text: Load, tmp_path: Path
) -> None:
    config = load_text()
    assert source(config).slot == "walstream"
    assert source(config).alarm_retained_wal == 10 << 30
    assert source(config).alarm_spill == 10 << 30
    assert sink(config).partitioner == "murmur2_random"
    assert config.shutdown_timeout == 20
    assert config.state == tmp_path / "state"


def test_a_relative_state_counts_from_the_file_wherever_a_command_is_run(
    valid: str, load_text: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    text = f'state = "kept"\n{valid}'
    assert load_text(text).state == tmp_path / "kept"
    assert load_text(text, {"WALSTREAM__STATE": "/x/y"}).state == Path("/x/y")


def test_a_state_that_stayed_in_the_working_directory_is_not_forgotten(
    valid: str,
    load_text: Load,
    complaint: Complain,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "kept").mkdir(parents=True)
    monkeypatch.chdir(elsewhere)
    text = f'state = "kept"\n{valid}'
    shown = complaint(text)
    assert str(elsewhere / "kept") in shown
    assert f"move it to {tmp_path / 'kept'}" in shown
    (tmp_path / "kept").mkdir()
    assert load_text(text).state == tmp_path / "kept"


def test_yaml_says_the_same_as_toml(load_text: Load) -> None:
    text = """
sources:
  app:
    kind: postgres
    dsn: host=/run/postgresql dbname=shop
    sinks: [kafka]
sinks:
  kafka:
    kind: kafka
    producer:
      bootstrap.servers: localhost:9092
"""
    read = load_text(text, name="w.yaml").with_file("")
    assert read == load_text().with_file("")


def test_a_command_names_the_file_that_was_named(load_text: Load) -> None:
    config = load_text(name="my shop.toml")
    again = Config.from_json(config.to_json())
    for one in (config, again):
        said = one.command("walstream status")
        assert said.startswith("walstream status -c '/")
        assert said.endswith("my shop.toml'")
    assert config.command("systemctl stop x") == "systemctl stop x"
    assert config.with_file("").command("walstream status") == "walstream status"


def test_the_folder_at_hand_comes_before_etc(
    valid: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "walstream.toml").write_text(valid)
    assert load(None, {}).sources.keys() == {"app"}


@pytest.mark.parametrize("name", ["walstream.yaml", "walstream.yml"])
def test_a_yaml_in_the_folder_is_found_where_no_toml_is(
    name: str, valid: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(
        "state: of_yaml\n"
        "sources: {app: {kind: postgres, dsn: host=/run/x, sinks: [log]}}\n"
        "sinks: {log: {kind: log}}\n"
    )
    assert load(None, {}).state == tmp_path / "of_yaml"
    (tmp_path / "walstream.toml").write_text(valid)
    assert load(None, {}).state != tmp_path / "of_yaml"


@pytest.mark.skipif(
    Path("/etc/walstream/walstream.toml").exists(), reason="walstream is installed here"
)
def test_no_file_anywhere_names_both_places_and_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        load(None, {})
    for part in ("./walstream.toml", "/etc/walstream/walstream.toml", "-c", "demo"):
        assert part in str(caught.value)
    assert caught.value.exit_code == 2


def test_overrides_win_over_the_file(valid: str, load_text: Load) -> None:
    environment = {
        "WALSTREAM__SOURCES__APP__SLOT": "123",
        "WALSTREAM__SOURCES__APP__TABLES": '["a.*", "b.c"]',
        "WALSTREAM__SOURCES__APP__FAILOVER": "true",
        "WALSTREAM__SHUTDOWN_TIMEOUT": "5s",
        "WALSTREAM__SINKS__KAFKA__TOPIC_PARTITIONS": "4",
        "WALSTREAM__SINKS__KAFKA__PRODUCER__SASL_PASSWORD": "0123",
        "WALSTREAM__SOURCES__APP__DSN": "host=${env:SOCKETS}",
        "SOCKETS": "/run/x",
    }
    config = load_text(valid, environment)
    assert source(config).slot == "123"
    assert source(config).tables == ["a.*", "b.c"]
    assert source(config).failover
    assert source(config).dsn == "host=/run/x"
    assert config.shutdown_timeout == 5
    assert sink(config).topic_partitions == 4
    assert sink(config).producer["sasl.password"] == "0123"


def test_the_environment_is_the_process_own_by_default(
    valid: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "w.toml").write_text(valid)
    monkeypatch.setenv("WALSTREAM__SOURCES__APP__SLOT", "other")
    assert os.environ["WALSTREAM__SOURCES__APP__SLOT"] == "other"
    assert source(load(tmp_path / "w.toml")).slot == "other"


MISTAKES = [
    ('[sources.app]\nslto = "x"', "sources.app.slto: is unknown: did you mean slot?"),
    (
        '[http]\nlisten = "x"\nport = 1',
        "http.port: is unknown: known are hosts, listen, metric_labels, probes, token",
    ),
    ('stat = "x"', "stat: is unknown: did you mean state?"),
    ("[spark]\nmastr = 1", "spark.mastr: is unknown: did you mean master?"),
    ('[spark]\nmaster = "yarn"', "spark.master: leads off this machine"),
    (
        '[sinks.kafka.topics."a.b"]\nname = "x"\npartition = []',
        'sinks.kafka.topics."a.b".partition: is unknown: did you mean partition_key?',
    ),
    (
        '[sinks.kafka.topics."a.b"]\nname = "x"\npartition_key = []',
        'sinks.kafka.topics."a.b".partition_key: is empty',
    ),
    ('[sources.app]\ntables = "public.*"', "sources.app.tables: is"),
    ("[sources.app]\ntables = [5]", "sources.app.tables[0]: is 5: write a text"),
    ('[sources.app]\nfailover = "yes"', "sources.app.failover: is"),
    ("[sources.app]\nslot = 5", "sources.app.slot: is 5: write a text in quotes"),
    (
        '[sources.app]\nbackfill = "maybe"',
        "sources.app.backfill: is \"maybe\": write 'initial', 'never' or 'only'",
    ),
    (
        '[sources.app]\nretain = "64MB"',
        'sources.app.retain: "64MB" is not a size: write',
    ),
    ('[sources.app]\ndetach_after = "0"', "sources.app.detach_after"),
    ('[sources.app]\nkind = "postgers"', "sources.app.kind: write 'postgres', 'sql'"),
    ("[sources]\napp = 5", "sources.app: is 5: write a table"),
    ('sinks = "x"', 'sinks: is "x": write a table'),
    ("[sinks.kafka]\ntopic_partitions = -1", "topic_partitions: is -1: write a number"),
    (
        "[sinks.kafka]\ntopic_partitions = 1.5",
        "topic_partitions: is 1.5: write a whole",
    ),
    ('[sinks.kafka]\npartitioner = "x"', "sinks.kafka.partitioner: is"),
    (
        "[sinks.kafka.producer]\nbootstrap.servers = 1",
        "sinks.kafka.producer.bootstrap: is a table: a key with a dot needs quotes",
    ),
    ('log_level = "loud"', "log_level: is"),
    ('state = ""', "state: "),
    ('[http]\nlisten = "8321"', 'http.listen: "8321" is not a valid address'),
    ("[sources.app]\nsinks = []", "sources.app.sinks: is empty"),
]


@pytest.mark.parametrize(("written", "wanted"), MISTAKES)
def test_a_mistake_is_named_with_what_would_be_right(
    complaint: Complain, written: str, wanted: str
) -> None:
    text = written
    if written.startswith("[sources.app]") and "kind" not in written:
        text += '\nkind = "postgres"\ndsn = "host=/run"'
        text += "" if "sinks" in written else '\nsinks = ["kafka"]'
    if "sinks.kafka" in written:
        text = f'[sinks.kafka]\nkind = "kafka"\n{written.removeprefix("[sinks.kafka]")}'
    assert wanted in complaint(text)


def test_all_problems_are_told_at_once(complaint: Complain) -> None:
    shown = complaint(
        """
stat = "x"
[sources.app]
kind = "postgres"
dsn = "${env:MISSING}"
slot = "a-b"
sinks = ["kafka", "other"]
[sources.bad]
kind = "postgres"
dsn = "host=db.example.org"
slot = "b"
sinks = ["kafka"]
[sinks.kafka]
kind = "kafka"
topic = "{source}"
producer = { "bootstrap.servers" = "localhost:1", acks = 1 }
""",
        {"WALSTREAM__STATE__X": "1", "WALSTREAM__": "2"},
    )
    for part in (
        "stat: is unknown",
        "sources.app.dsn: the environment variable MISSING is not set",
        "sources.app.slot",
        'there is no sink "other"',
        "sources.bad.dsn: leads to db.example.org",
        "sinks.kafka.producer.acks: breaks a guarantee",
        "WALSTREAM__: has an empty name",
    ):
        assert part in shown
    assert "8 problems" in shown


def test_a_key_that_could_not_be_resolved_is_named_once(complaint: Complain) -> None:
    text = '[sources.app]\nkind = "postgres"\ndsn = "${env:NO}"\nsinks = ["k"]\n'
    shown = complaint(text + '[sinks.k]\nkind = "discard"')
    assert shown.count("sources.app.dsn") == 1


def test_topics_are_read_from_a_file_beside_those_written_here(
    valid: str, load_text: Load, tmp_path: Path
) -> None:
    file = tmp_path / "topics.json"
    file.write_text('{"a": {"name": "x", "partition_key": ["k"]}, "b": {"name": "y"}}')
    config = load_text(f'{valid}topics_file = "{file}"\ntopics.b = {{ name = "z" }}')
    topics = sink(config).topics
    assert (topics["a"].name, topics["a"].partition_key) == ("x", ["k"])
    assert topics["b"].name == "z"
    assert list(topics) == ["b", "a"]  # patterns are tried in this order
    assert load_text(mask(config)) == config


def test_the_map_of_the_rust_library_is_read_as_it_stands(
    valid: str, load_text: Load, tmp_path: Path
) -> None:
    file = tmp_path / "topics.json"
    file.write_text(
        '{"inventory_table":'
        '{"name":"inventory_topic","partition_key":["organization_id"]}}'
    )
    strict = 'strict = true\non_truncate = "stop"'
    text = valid.replace("sinks = [", 'backfill = "never"\nsinks = [')
    config = load_text(f'{text}topics_file = "{file}"\n{strict}')
    (mapped,) = sink(config).topics.values()
    assert mapped.name == "inventory_topic"
    assert mapped.partition_key == ["organization_id"]


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        (None, "No such file"),
        ("", "write a JSON object"),
        ("[]", "write a JSON object"),
        ('{"a": {"name": "x"}, "a": {"name": "y"}}', 'names "a" twice'),
        ('{"a": {"name": "x", "name": "y"}}', 'names "name" twice'),
        ("[" * 100_000, "write a JSON object"),
        (
            '{"a": {"name": "a b"}}',
            'sinks.kafka.topics.a.name: "a b" is not a valid topic name',
        ),
        ('{"a": 5}', "sinks.kafka.topics.a: is 5: write a table"),
    ],
)
def test_a_bad_topics_file_is_named(
    valid: str, complaint: Complain, tmp_path: Path, content: str | None, wanted: str
) -> None:
    file = tmp_path / "topics.json"
    if content is not None:
        file.write_text(content)
    assert wanted in complaint(f'{valid}topics_file = "{file}"')


SECRETIVE = """
[sources.app]
kind = "postgres"
dsn = "postgresql://u:${env:PASSWORD}@${env:HOST}/db"
sinks = ["kafka"]
slot = "SLOT"
[sources.old]
kind = "sql"
url = "mysql+pymysql://u:${file:FOLDER/secret}@127.0.0.1/db"
sinks = ["rows"]
tables.t.primary_key = "id"
[sinks.kafka]
kind = "kafka"
producer = { "bootstrap.servers" = "localhost:1", "sasl.password" = "${env:PASSWORD}" }
[sinks.rows]
kind = "log"
format = "row"
[spark.conf]
"spark.driver.extraJavaOptions" = "-DtrustStorePassword=${env:PASSWORD}"
"""


@pytest.fixture
def secretive(tmp_path: Path) -> str:
    (tmp_path / "secret").write_text(f"{CANARY}-file\n")
    text = SECRETIVE.replace("FOLDER", str(tmp_path))
    return text.replace('"SLOT"', '"app"')


def test_secrets_are_known_and_shown_nowhere(secretive: str, load_text: Load) -> None:
    config = load_text(secretive, {"PASSWORD": CANARY, "HOST": "127.0.0.1"})
    assert {CANARY, f"{CANARY}-file"} <= config.secrets.values
    assert source(config).dsn == f"postgresql://u:{CANARY}@127.0.0.1/db"
    for text in (repr(config), str(config), mask(config), repr(config.secrets)):
        assert CANARY not in text
    text = f"could not connect with {CANARY} to 127.0.0.1"
    assert config.secrets.scrub(text) == "could not connect with *** to 127.0.0.1"


def test_a_whole_dsn_from_the_environment_is_a_secret(
    valid: str, load_text: Load
) -> None:
    dsn = f"host=127.0.0.1 user=u password={CANARY}"
    text = valid.replace("host=/run/postgresql dbname=shop", "${env:DSN}")
    config = load_text(text, {"DSN": dsn})
    assert CANARY not in config.secrets.scrub(f"cannot reach {dsn}")
    assert "host=127.0.0.1 user=u password=***" in mask(config)


@pytest.mark.parametrize(
    ("written", "instead"),
    [
        ('slot = "app"', "slot = 5"),
        ('"postgresql://u:${env:PASSWORD}@', '"postgresql://u:x@${env:PASSWORD}@'),
        ('"postgresql://u:${env:PASSWORD}@', '"${env:PASSWORD}'),
        ('dsn = "postgresql', 'dns = "postgresql'),
        ('slot = "app"', 'slot = "${env:PASSWORD}"'),
        ('slot = "app"', 'slot = "app"\nsinks_ = "${env:PASSWORD}"'),
        ('"mysql+pymysql://u:', '"'),
        (
            '"sasl.password" = "${env:PASSWORD}"',
            '"sasl.password" = ["${env:PASSWORD}"]',
        ),
        ('"sasl.password" =', '"sasl.password_cb" ='),
        ('"sasl.password" =', '"acks" ='),
        ("[spark.conf]", "[spark.cnf]"),
        ('"spark.driver', '"park.driver'),
        ('kind = "postgres"', 'kind = "${env:PASSWORD}"'),
        ("${env:HOST}", "db.example.org"),
        ("${file:", "${file:/nonexistent"),
    ],
)
def test_no_error_shows_a_secret(
    secretive: str, complaint: Complain, written: str, instead: str
) -> None:
    assert written in secretive
    environment = {"PASSWORD": CANARY, "HOST": "127.0.0.1"}
    assert CANARY not in complaint(secretive.replace(written, instead), environment)


def test_an_error_keeps_no_chain_that_a_traceback_would_show(
    valid: str, load_text: Load
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_text(valid.replace('"app"', "app") + "stat = 5")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_a_folder_that_may_not_be_entered_is_named_not_a_traceback(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    closed = tmp_path_factory.mktemp("closed") / "walstream"
    closed.mkdir(0o700)
    there = closed / "walstream.toml"
    there.write_text("")
    module = sys.modules[has_default_file.__module__]
    monkeypatch.setattr(module, "DEFAULT_FILES", (there,))
    closed.chmod(0)
    user = os.geteuid()
    try:
        os.seteuid(65534 if user == 0 else user)  # root may enter all
        with pytest.raises(ConfigError, match="may not enter"):
            load(None, {})
        assert not has_default_file()
    finally:
        os.seteuid(user)
        closed.chmod(0o700)
    assert has_default_file()
