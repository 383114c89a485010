"""`walstream check` says what run would meet; what it prints as the cure, cures."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest
from confluent_kafka.admin import AdminClient

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import OwnKafka
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader, TopicAdmin
from tests.support.programs.operator import (
    ROOT,
    Operator,
    checked,
    codes,
    findings,
    found,
)
from walstream.testing.servers import LocalKafka
from walstream.testing.servers.port import free_port

SCHEMA: Final = ROOT / "docs/schemas/check.json"
_TABLE: Final = "CREATE TABLE t (id int PRIMARY KEY, v text)"


@pytest.fixture
def database(postgres18: PostgresServer) -> Iterator[Database]:
    """Make one on 18 alone: Kafka and the state folder are the same for all."""
    with temporary_database(postgres18) as fresh:
        fresh.execute(_TABLE)
        yield fresh


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    return Operator(tmp_path / "operator")


def test_before_beside_and_after_a_run_it_would_start(
    database: Database, runs: Runs, reader: Reader, operator: Operator
) -> None:
    walstream = runs(f"{database.dsn}?password=sEcReT")
    state = walstream.folder / "state"
    state.mkdir()
    state.chmod(0o755)
    before = operator.check(walstream)
    assert before["ok"], findings(before)
    assert found(before, "topics-to-create")["severity"] == "note"
    for code in ("state-open", "configuration-open"):
        operator.run(found(before, code)["repair"]["command"])
    assert not list(state.iterdir())

    with walstream:
        database.execute("INSERT INTO t VALUES (1)")
        reader.count(1)
        walstream.streaming_said()
        beside = operator.check(walstream)
        assert beside["ok"], findings(beside)
        assert f"process {walstream.pid}" in found(beside, "state-in-use")["what"]
        assert beside["instance"] == str(walstream.pid)
        shown = checked("-c", walstream.configuration).stdout
        assert f"walstream runs here, process {walstream.pid}" in shown
        assert "run would start" not in shown
        assert walstream.running
        assert walstream.terminate() == 0

    after = operator.check(walstream)
    assert after["ok"], findings(after)
    gone = {"state-open", "configuration-open", "state-in-use", "topics-to-create"}
    assert not codes(after) & gone
    schema = json.loads(SCHEMA.read_text())
    for report in (before, beside, after):
        jsonschema.validate(report, schema)
        assert "sEcReT" not in json.dumps(report)
    assert_people_can_read_it(walstream.configuration)


def assert_people_can_read_it(configuration: Path) -> None:
    ended = checked("-c", configuration)
    assert ended.returncode == 0, ended.stdout
    first, *_, last = ended.stdout.splitlines()
    assert first.startswith("app  ")
    assert last.startswith("run would start")
    assert "\x1b" not in ended.stdout
    assert "sEcReT" not in ended.stdout + ended.stderr
    prose = [line for line in ended.stdout.splitlines() if "SQL>" not in line]
    assert all(len(line) <= 100 for line in prose)
    quiet = checked("-q", "-c", configuration)
    assert [line.split("  ")[0] for line in quiet.stdout.splitlines()] == [
        "app",
        "",
        "",
        "run would start",
    ]


def test_the_published_schema_is_the_printed_one() -> None:
    assert json.loads(checked("--json-schema").stdout) == json.loads(SCHEMA.read_text())


def test_servers_that_are_away_are_said_soon(runs: Runs, operator: Operator) -> None:
    port = free_port()
    dsn = f"postgresql://me:sEcReT@127.0.0.1:{port}/app"
    walstream = runs(dsn, bootstrap=f"127.0.0.1:{port}")
    began = time.monotonic()
    report = operator.check(walstream)
    assert time.monotonic() - began < 30  # the command's own start is some of it
    assert report["exit_code"] == 5
    stops = [one for one in findings(report) if one["severity"] == "stop"]
    assert len(stops) == 2
    assert "refused" in found(report, "brokers-unreachable")["what"]
    assert "sEcReT" not in json.dumps(report)


def test_a_configuration_that_cannot_be_read_is_a_finding_too(tmp_path: Path) -> None:
    file = tmp_path / "walstream.toml"
    file.write_text('[sources.app]\nkind = "postgres"\ndns = "password=sEcReT"\n')
    ended = checked("--json", "-c", file)
    report = json.loads(ended.stdout)
    jsonschema.validate(report, json.loads(SCHEMA.read_text()))
    assert ended.returncode == report["exit_code"] == 2
    assert "did you mean dsn?" in found(report, "configuration")["what"]
    assert "sEcReT" not in ended.stdout + ended.stderr


def test_all_that_this_version_does_not_do_is_named(
    database: Database, runs: Runs, operator: Operator
) -> None:
    walstream = runs(database.dsn, source={"encoding": "LATIN1"})
    report = operator.check(walstream)
    assert report["exit_code"] == 2
    assert [one["code"] for one in findings(report)].count("unsupported") == 1


def test_a_missing_topic_is_made_as_printed(
    database: Database, runs: Runs, reader: Reader, operator: Operator
) -> None:
    walstream = runs(database.dsn, sink={"create_topics": False})
    report = operator.check(walstream)
    missing = found(report, "topic-missing")
    assert report["exit_code"] == 2
    operator.run(missing["repair"]["command"])
    assert operator.check(walstream)["ok"]
    with walstream:
        database.execute("INSERT INTO t VALUES (1)")
        reader.count(1)


@pytest.mark.fault_long
def test_other_partitions_are_accepted_as_printed(
    database: Database, runs: Runs, reader: Reader, operator: Operator
) -> None:
    admin = TopicAdmin(runs.bootstrap)
    walstream = runs(database.dsn)
    with walstream:
        database.execute("INSERT INTO t VALUES (1)")
        reader.count(1)
        assert walstream.terminate() == 0
    admin.grow(f"{runs.prefix}public.t", 3)
    report = operator.check(walstream)
    assert report["exit_code"] == 3
    repair = found(report, "topic-partitions")["repair"]["command"]
    verb, *flags = repair.removesuffix(f" -c {walstream.configuration}").split()[1:]
    assert (verb, flags) == ("run", ["--accept-partitions"])
    walstream.start().ends_with(3, "3 partitions, it had 1")
    walstream.start(*flags).streaming()
    database.execute("INSERT INTO t VALUES (2)")
    reader.count(2)
    assert walstream.terminate() == 0
    assert "topic-partitions" not in codes(operator.check(walstream))

    admin.delete(f"{runs.prefix}public.t")
    admin.create(f"{runs.prefix}public.t", 3)
    report = operator.check(walstream)
    assert report["ok"]
    assert found(report, "topic-created-again")["severity"] == "warning"


BAD: Final[dict[str, dict[str, str]]] = {
    "a": {"min_insync_replicas": "2", "max_message_bytes": "5000"},
    "b": {"cleanup_policy": "compact", "message_timestamp_type": "LogAppendTime"},
    "c": {"retention_ms": "1"},
    "d": {"message_timestamp_before_max_ms": "1"},
}
SEVERITIES: Final = {
    ("topic-min-insync", "stop"),
    ("topic-message-size", "warning"),
    ("topic-compacted", "warning"),
    ("topic-timestamps", "note"),
    ("topic-timestamps", "warning"),
    ("topic-retention", "warning"),
}


@pytest.mark.fault_long
def test_configurations_of_topics_are_set_as_printed(
    database: Database, runs: Runs, reader: Reader, operator: Operator
) -> None:
    for table in BAD:
        database.execute(f"CREATE TABLE {table} (id int PRIMARY KEY)")
    walstream = runs(database.dsn)
    with walstream:
        database.execute("INSERT INTO t VALUES (1)")
        reader.count(1)
        assert walstream.terminate() == 0
    database.execute("INSERT INTO d VALUES (1)")  # is late from here on
    admin = TopicAdmin(runs.bootstrap)
    for table, settings in BAD.items():
        for key, text in settings.items():
            topic = f"{runs.prefix}public.{table}"
            admin.configure(topic, key.replace("_", "."), text)

    report = operator.check(walstream)
    assert report["exit_code"] == 5
    seen = {(one["code"], one["severity"]) for one in findings(report)}
    assert seen >= SEVERITIES
    walstream.start().ends_with(3, "INVALID_TIMESTAMP")

    commands = [one["repair"]["command"] for one in findings(report)]
    operator.run(" &\n".join(filter(None, commands)) + " &\nwait")
    report = operator.check(walstream)
    assert not codes(report) & {code for code, _ in SEVERITIES}, findings(report)
    with walstream:
        for table in BAD:
            database.execute(f"INSERT INTO {table} (id) VALUES (2)")  # noqa: S608
        reader.count(2 + len(BAD))


REFUSED: Final[list[tuple[dict[str, Any], tuple[str, int]]]] = [
    ({"topic_config": {"retention.ms": "long"}}, ("topic-creation", 2)),
    ({"topic_replication": 3}, ("topic-creation", 5)),
    ({"producer": {"batch.num.messages": "many"}}, ("producer-properties", 2)),
]


@pytest.mark.parametrize(("sink", "expected"), REFUSED)
def test_what_kafka_or_its_client_would_refuse_is_found(
    database: Database,
    runs: Runs,
    operator: Operator,
    sink: dict[str, Any],
    expected: tuple[str, int],
) -> None:
    code, exit_code = expected
    if producer := sink.get("producer"):
        sink = {"producer": {"bootstrap.servers": runs.bootstrap, **producer}}
    walstream = runs(database.dsn, sink=sink)
    report = operator.check(walstream)
    assert found(report, code)["exit_code"] == report["exit_code"] == exit_code
    if code == "producer-properties":  # the others wait for, or ask, the same brokers
        walstream.start().ends_with(2, "batch.num.messages")


def test_partition_keys_are_cured_as_printed(
    database: Database, runs: Runs, reader: Reader, operator: Operator
) -> None:
    database.execute(
        "CREATE TABLE p (id int, org int, PRIMARY KEY (id)) PARTITION BY RANGE (id);"
        "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)"
    )
    topics = {
        name: {"name": f"{runs.prefix}{name}", "partition_key": [column]}
        for name, column in {"public.t": "v", "public.p": "org"}.items()
    }
    walstream = runs(database.dsn, sink={"topics": topics})
    report = operator.check(walstream)
    assert report["exit_code"] == 2
    problems = [one for one in findings(report) if one["code"] == "partition-key"]
    assert len(problems) == 4
    for problem in problems:
        database.execute(problem["repair"]["sql"])
    report = operator.check(walstream)
    assert report["ok"], findings(report)
    with walstream:
        database.execute("INSERT INTO p VALUES (1, 5); INSERT INTO t VALUES (1, 'x')")
        database.execute("DELETE FROM p")
        assert [record.key for record in reader.count(3)].count(b'["5"]') == 2


def test_tables_that_would_meet_in_one_topic_are_named(
    database: Database, runs: Runs, operator: Operator
) -> None:
    database.execute('CREATE TABLE "é" (id int PRIMARY KEY)')
    database.execute('CREATE TABLE "_xC3__xA9_" (id int PRIMARY KEY)')
    walstream = runs(database.dsn)
    report = operator.check(walstream)
    assert found(report, "topic-name")["exit_code"] == report["exit_code"] == 2


def test_a_damaged_state_is_reset_as_printed(
    database: Database, runs: Runs, reader: Reader, operator: Operator
) -> None:
    walstream = runs(database.dsn)
    with walstream:
        assert walstream.terminate() == 0
    (walstream.state / "data.mdb").write_bytes(b"\xff" * 20_000)
    report = operator.check(walstream)
    damage = found(report, "state-damaged")
    assert damage["exit_code"] == report["exit_code"] == 3
    assert "history" not in codes(report)
    assert damage["repair"]["then"] == "walstream run, unless it runs"
    operator.run(damage["repair"]["command"], says="y\n")
    assert operator.check(walstream)["ok"]
    with walstream:
        database.execute("INSERT INTO t VALUES (1)")
        reader.count(1)


def test_a_folder_that_cannot_be_made_ends_run_as_said(
    database: Database, runs: Runs, operator: Operator, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    walstream = runs(database.dsn, top={"state": str(tmp_path / "file" / "state")})
    report = operator.check(walstream)
    assert found(report, "state-unwritable")["exit_code"] == report["exit_code"] == 2
    walstream.start().ends_with(2, "Not a directory")


def test_help_has_an_example() -> None:
    shown = checked("--help").stdout
    assert "Example: walstream check" in " ".join(shown.split())


@pytest.mark.fault_long
def test_one_replica_is_named_where_there_are_two_brokers(
    database: Database, own_kafka: OwnKafka, runs: Runs, operator: Operator
) -> None:
    first = own_kafka()
    properties = (first.folder / "server.properties").read_text()
    (voters,) = re.findall(r"^controller.quorum.voters=.*$", properties, re.MULTILINE)
    (cluster,) = re.findall(
        r"^cluster.id=.*$", (first.data / "meta.properties").read_text(), re.MULTILINE
    )
    port = free_port()
    listener = f"PLAINTEXT://127.0.0.1:{port}"
    second = LocalKafka(
        settings={
            "process.roles": "broker",
            "node.id": "2",
            "controller.quorum.voters": voters.partition("=")[2],
            "listeners": listener,
            "advertised.listeners": listener,
        }
    )
    second._ports = (port, 0)  # noqa: SLF001 - a broker without a controller
    second._placed = True  # noqa: SLF001 - its port is chosen
    second.data.mkdir()
    (second.data / "meta.properties").write_text(f"{cluster}\nnode.id=2\nversion=1\n")
    with second:
        admin = AdminClient({"bootstrap.servers": first.bootstrap})
        wait_until(
            lambda: len(admin.describe_cluster().result().nodes) == 2, 30, "both serve"
        )
        TopicAdmin(first.bootstrap).create(f"{runs.prefix}public.t")
        walstream = runs(database.dsn, bootstrap=first.bootstrap)
        report = operator.check(walstream)
        assert report["ok"]
        assert "2 brokers" in found(report, "topic-replication")["what"]

        database.execute("CREATE TABLE fresh (id int PRIMARY KEY)")
        report = operator.check(walstream)
        told = [one for one in findings(report) if one["code"] == "topic-replication"]
        assert "topic_replication = 2" in told[1]["repair"]["then"]
        walstream = runs(
            database.dsn, bootstrap=first.bootstrap, sink={"topic_replication": 2}
        )
        found(operator.check(walstream), "topic-replication")  # the one that is there
