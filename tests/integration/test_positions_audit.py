"""`walstream positions audit`: what Kafka has, and the position, after each mishap."""

import json
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from pydantic import TypeAdapter

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import (
    Database,
    PostgresServer,
    temporary_database,
)
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader, TopicAdmin
from tests.support.programs.verb import as_json, is_plain, published, verb
from tests.support.programs.walstream import SINK, SOURCE, Walstream, toml
from walstream.lsn import parse, show
from walstream.state.store import LmdbStore
from walstream.status.positions.audit_model import Audit

pytestmark = pytest.mark.same_on_15

_ADVANCE = "SELECT pg_replication_slot_advance(%s, pg_current_wal_lsn())::text"
_WRITE = "SELECT pg_logical_emit_message(true, 'test', 'x')"


@pytest.fixture
def newest(newest_postgres: PostgresServer) -> Iterator[Database]:
    with temporary_database(newest_postgres) as fresh:
        fresh.execute("CREATE TABLE t (id int PRIMARY KEY)")
        yield fresh


class Killed:
    """A walstream that was killed; its position is where it was before its last row."""

    def __init__(self, runs: Runs, database: Database, reader: Reader) -> None:
        self.database = database
        self.reader = reader
        self.walstream = runs(
            database.dsn, source={"retain": "64MiB"}, sink={"topic_partitions": 2}
        )
        self.walstream.configuration.write_text(toml(self.walstream.document()))
        with self.walstream:
            self.rows = 0
            self.insert(10)
            self.before = self._caught_up()
            self.insert(10)
            self.last = max(record.name for record in reader.records)
            self._caught_up()
            self.walstream.kill()

    def insert(self, count: int) -> None:
        for number in range(self.rows, self.rows + count):
            self.database.execute(f"INSERT INTO t VALUES ({number})")  # noqa: S608 - a test's own
        self.rows += count
        self.reader.count(self.rows)

    def _caught_up(self) -> int:
        """Wait for a position beyond all rows; return it."""
        last = max(record.name[0] for record in self.reader.records)
        found = 0

        def beyond() -> bool:
            nonlocal found
            with LmdbStore.open_read_only(self.walstream.state) as positions:
                position = positions.position() if positions else None
            found = position.resume if position else 0
            return found > last

        wait_until(beyond, 30, "the position is beyond the rows")
        return found

    def forget(self) -> None:
        """Have it at the position of before, as if that were all it could store."""
        with LmdbStore(self.walstream.state) as positions:
            positions.rewind(self.before)

    def audit(self) -> dict[str, Any]:
        """Audit its only source; `whole` is all that is said."""
        found = as_json(self.walstream.configuration, "audit", "positions", "audit")
        (one,) = found["sources"]
        return {**one, "exit_code": found["exit_code"], "whole": json.dumps(found)}

    def printed(self) -> str:
        """Return what it prints for people."""
        done = verb(self.walstream.configuration, "positions", "audit")
        assert is_plain(_spelled(done.stdout)), done.stdout + done.stderr
        return done.stdout


def _spelled(text: str) -> str:
    """Leave out the commands, which are never wrapped, and spell the signs."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("$")]
    return "\n".join(lines).replace("\u2713", "v").replace("\u2717", "x")


@pytest.fixture
def killed(newest: Database, runs: Runs, reader: Reader) -> Killed:
    return Killed(runs, newest, reader)


def verdicts(found: dict[str, Any]) -> list[tuple[str, bool]]:
    (sink,) = found["sinks"]
    (topic,) = sink["topics"]
    return [(one["verdict"], one["left_out"]) for one in topic["partitions"]]


def test_the_published_schema_is_the_one_of_the_code() -> None:
    schema = TypeAdapter(Audit).json_schema(mode="serialization")
    assert published("audit") == schema


def test_what_a_killed_one_delivered_is_left_out(killed: Killed) -> None:
    found = killed.audit()
    assert (found["verdict"], found["exit_code"]) == ("agree", 0)
    assert verdicts(found) == [("agree", False)] * 2

    killed.forget()
    found = killed.audit()
    assert (found["verdict"], found["exit_code"]) == ("agree", 0)
    assert verdicts(found) == [("agree", True)] * 2
    (sink,) = found["sinks"]
    assert sink["up_to"] == show(killed.last[0])
    assert "will be left out" in sink["text"]
    assert sink["text"][:20] in killed.printed()

    walstream = killed.walstream
    with walstream:
        _says(walstream, "what Kafka has already is left out")
        killed.insert(1)
        found = killed.audit()
        assert (found["verdict"], found["exit_code"]) == ("agree", 0), found["whole"]
        assert found["start"]["outcome"] == "streaming"
        assert walstream.terminate() == 0
    assert verdicts(killed.audit()) == [("agree", False)] * 2
    killed.reader.count(killed.rows)  # nothing is there twice


def test_what_was_rewound_comes_again(killed: Killed) -> None:
    walstream = killed.walstream
    to = show(killed.before)
    done = verb(
        walstream.configuration, "positions", "rewind", SOURCE, "--to", to, "--yes"
    )
    assert done.returncode == 0, done.stderr
    found = killed.audit()
    assert (found["verdict"], found["exit_code"]) == ("repeated", 0)
    assert verdicts(found) == [("repeated", False)] * 2
    (sink,) = found["sinks"]
    assert (sink["position"], sink["up_to"]) == (to, show(killed.last[0]))
    assert "rewound" in sink["text"]
    with walstream:
        _says(walstream, "beyond the position may come again")
        killed.reader.count(killed.rows + 10)


def test_what_another_configuration_sent_comes_again(killed: Killed) -> None:
    killed.forget()
    walstream = killed.walstream
    walstream.sink = {**walstream.sink, "split_key_updates": False}
    walstream.configuration.write_text(toml(walstream.document()))
    found = killed.audit()
    assert (found["verdict"], found["exit_code"]) == ("repeated", 0)
    assert "another configuration" in found["sinks"][0]["text"]


def _says(walstream: Walstream, text: str) -> None:
    wait_until(lambda: walstream.said(text), 30, f"it says {text!r}")


def _delete(killed: Killed, admin: TopicAdmin) -> None:
    admin.delete(killed.reader.topics()[0])
    wait_until(lambda: not killed.reader.topics(), 30, "the topic is gone")


def test_a_topic_that_is_gone_or_made_again_misses_all(
    killed: Killed, runs: Runs
) -> None:
    admin = TopicAdmin(runs.bootstrap)
    (topic,) = killed.reader.topics()
    _delete(killed, admin)
    found = killed.audit()
    assert (found["verdict"], found["exit_code"]) == ("missing", 3)
    assert "the topic is gone" in found["whole"]
    admin.create(topic, 2)
    found = killed.audit()
    assert (found["verdict"], found["exit_code"]) == ("missing", 3)
    assert "created again" in found["whole"]


def test_a_record_of_another_program_or_history_is_foreign(
    killed: Killed, runs: Runs
) -> None:
    (topic,) = killed.reader.topics()
    producer = Producer({"bootstrap.servers": runs.bootstrap})
    producer.produce(topic, b'{"by": "somebody"}', partition=1)
    assert producer.flush(30) == 0
    found = killed.audit()
    assert (found["verdict"], found["exit_code"]) == ("foreign", 3)
    assert [verdict for verdict, _ in verdicts(found)] == ["agree", "foreign"]
    assert "is not walstream's" in found["whole"]

    mine = next(one for one in killed.reader.records if one.partition == 0)
    header: list[tuple[str, str | bytes | None]]
    header = [("walstream-source", b"7/elsewhere/0")]
    producer.produce(topic, mine.value, mine.key, partition=0, headers=header)
    assert producer.flush(30) == 0
    found = killed.audit()
    assert [verdict for verdict, _ in verdicts(found)] == ["foreign", "foreign"]
    assert "7/elsewhere/0" in found["whole"]

    with killed.walstream as walstream:
        _says(walstream, "Kafka and the position disagree")


def test_a_slot_that_somebody_advanced_misses_what_it_passed(killed: Killed) -> None:
    database, slot = killed.database, killed.walstream.slot
    database.execute("INSERT INTO t VALUES (-1)")
    database.fetch(_WRITE)
    wait_until(
        lambda: (
            database.fetch(
                "SELECT NOT active FROM pg_replication_slots WHERE slot_name = %s", slot
            )
            == [(True,)]
        ),
        30,
        "nobody reads the slot",
    )
    database.fetch(_ADVANCE, slot)
    found = killed.audit()
    assert (found["verdict"], found["exit_code"]) == ("missing", 3)
    gap = found["missing"]
    assert parse(gap["begins"]) < parse(gap["ends"])
    assert gap["begins"] == found["state"]["resume"]
    assert "missing: changes from" in killed.printed()

    database.fetch("SELECT pg_drop_replication_slot(%s)", slot)
    found = killed.audit()
    assert (found["verdict"], found["exit_code"]) == ("missing", 3)
    assert "is gone" in found["missing"]["why"]
    assert found["slot"] is None


def test_a_lost_state_folder_is_compared_by_slot_and_records(killed: Killed) -> None:
    shutil.rmtree(killed.walstream.state)
    found = killed.audit()
    # run asks for consent, since only the operator knows that it was lost
    assert (found["verdict"], found["exit_code"]) == ("agree", 3)
    assert found["start"]["outcome"] == "stop"
    assert {left_out for _, left_out in verdicts(found)} == {True}
    assert found["sinks"][0]["position"] == found["slot"]["confirmed_lsn"]


def test_what_cannot_be_asked_is_said(killed: Killed) -> None:
    walstream = killed.walstream
    document = walstream.document()
    document["sinks"][SINK]["producer"]["bootstrap.servers"] = "127.0.0.1:1"
    walstream.configuration.write_text(toml(document))
    found = killed.audit()
    assert (found["verdict"], found["exit_code"]) == ("unknown", 5)
    document = walstream.document()
    document["sinks"][SINK]["format"] = "event"
    walstream.configuration.write_text(toml(document))
    found = killed.audit()
    assert (found["verdict"], found["exit_code"]) == ("unknown", 0)
    assert "do not tell their names" in found["whole"]
