"""One of several sinks fails: the others go on, and it comes back when it can."""

from collections.abc import Iterator
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer, OwnKafka
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader, TopicAdmin
from tests.support.programs.verb import as_json, verb
from tests.support.programs.walstream import Walstream, toml

pytestmark = pytest.mark.same_on_15

LARGE = "x" * 5000


@pytest.fixture
def database(postgres: PostgresServer) -> Iterator[Database]:
    with temporary_database(postgres) as fresh:
        fresh.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
        yield fresh


@dataclass(frozen=True)
class Pair:
    """A source with two sinks, and what reached both; the second one can fail."""

    walstream: Walstream
    first: Reader
    second: Reader
    admin: TopicAdmin
    topic: str  # of the second
    copy: str  # the slot of the second, when it is detached

    def takes(self, size: int) -> None:
        """Let the second one's topic take records of so many bytes."""
        self.admin.configure(self.topic, "max.message.bytes", str(size))

    def source(self) -> dict[str, Any]:
        """Ask `status`."""
        configuration = self.walstream.configuration
        (found,) = as_json(configuration, "status", "status")["sources"]
        return found  # type: ignore[no-any-return]  # of JSON

    def sink_state(self) -> str:
        sinks = {sink["name"]: sink["state"] for sink in self.source()["sinks"]}
        return str(sinks["other-one"])

    def same(self, count: int) -> None:
        """Claim that both got the same, in order, and nothing twice."""
        expected = [record.name for record in self.first.count(count)]
        assert [record.name for record in self.second.count(count)] == expected
        assert expected == sorted(set(expected))


@pytest.fixture
def pair(
    kafka: KafkaServer, runs: Runs, database: Database, reader: Reader
) -> Iterator[Pair]:
    prefix = f"other_{runs.prefix}"
    admin, topic = TopicAdmin(kafka.bootstrap), f"{prefix}public.t"
    admin.create(topic, 1, max_message_bytes="2000")
    others = {"other-one": {"topic": prefix + "{schema}.{table}"}}
    walstream = runs(database.dsn, others=others)
    copy = f"{walstream.slot}_other_one"
    with Reader(kafka.bootstrap, prefix) as second:
        yield Pair(walstream, reader, second, admin, topic, copy)


def insert(database: Database, first: int, last: int, text: str = "x") -> None:
    query = "INSERT INTO t SELECT i, %s FROM generate_series(%s::int, %s::int) i"
    database.execute(query, text, first, last)


def slots(database: Database) -> list[str]:
    query = "SELECT slot_name FROM pg_replication_slots WHERE database = %s ORDER BY 1"
    return [name for (name,) in database.fetch(query, database.name)]


def test_a_reload_may_take_a_detached_sink_away(database: Database, pair: Pair) -> None:
    walstream = pair.walstream.start().streaming()
    insert(database, 1, 3)
    pair.same(3)
    insert(database, 4, 4, LARGE)
    walstream.until("trying again")
    insert(database, 5, 50_000)  # its worker ends later than the source's own

    walstream.others = {}
    walstream.configuration.write_text(toml(walstream.document()), "utf-8")
    assert verb(walstream.configuration, "reload").returncode == 0
    wait_until(lambda: slots(database) == [walstream.slot], 30, "its slot is gone")
    insert(database, 50_001, 50_003)
    names = [record.name for record in pair.first.count(50_003)]
    assert len(set(names)) == 50_003
    assert walstream.terminate() == 0
    assert not walstream.said("defect")
    assert not walstream.said("in use by process")


def test_a_sink_that_was_taken_out_is_told_what_it_lacks_when_it_is_back(
    database: Database, pair: Pair
) -> None:
    walstream, others = pair.walstream.start().streaming(), pair.walstream.others
    insert(database, 1, 3)
    pair.same(3)
    walstream.others = {}
    walstream.configuration.write_text(toml(walstream.document()), "utf-8")
    assert verb(walstream.configuration, "reload").returncode == 0
    walstream.until("sink is no longer fed by the source")
    insert(database, 4, 5)
    pair.first.count(5)
    walstream.others = others
    walstream.configuration.write_text(toml(walstream.document()), "utf-8")
    assert verb(walstream.configuration, "reload").returncode == 0
    walstream.until("sink is among the source's sinks again")
    insert(database, 6, 6)
    pair.first.count(6)
    assert [record.new["id"] for record in pair.second.count(4)] == list("1236")
    assert walstream.terminate() == 0
    (source,) = as_json(walstream.configuration, "audit", "positions", "audit")[
        "sources"
    ]
    texts = {one["sink"]: one["text"] for one in source["sinks"]}
    assert "were not sent to it" in texts["other-one"]
    assert "not sent" not in texts["kafka"]


def test_a_sink_that_fails_for_good_is_detached_and_comes_back_after_its_repair(
    database: Database, pair: Pair
) -> None:
    walstream = pair.walstream.start().streaming()
    insert(database, 1, 3)
    pair.same(3)

    insert(database, 4, 4, LARGE)
    pair.first.count(4)
    walstream.until("streaming to a detached sink")
    assert slots(database) == [walstream.slot, pair.copy]
    insert(database, 5, 20)
    pair.first.count(20)
    wait_until(lambda: pair.sink_state() == "detached", 30, "status says so")
    problems = pair.source()["problems"]
    assert any("other-one" in said and pair.copy in said for said in problems)
    assert len(pair.second.read()) == 3

    pair.takes(200_000)
    walstream.until("sink is back in the source's stream", 60)
    insert(database, 21, 25)
    pair.same(25)
    wait_until(lambda: slots(database) == [walstream.slot], 20, "the copy is dropped")
    wait_until(lambda: pair.source()["problems"] == [], 30, "all is well")
    assert walstream.terminate() == 0


def test_a_start_names_a_copy_of_which_its_state_does_not_know(
    database: Database, pair: Pair
) -> None:
    """As where an older copy of the state folder was brought back."""
    database.execute(
        "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", pair.copy
    )
    walstream = pair.walstream.start().streaming()
    said = walstream.until("a slot keeps WAL for nobody")
    assert f"walstream slots drop {pair.copy}" in str(said) + walstream.text
    insert(database, 1, 3)
    pair.same(3)
    assert walstream.terminate() == 0
    done = verb(walstream.configuration, "slots", "drop", pair.copy, "--yes")
    assert done.returncode == 0, done.stderr
    assert slots(database) == [walstream.slot]


def test_a_detached_sink_outlives_restarts_and_a_reset_drops_its_copy(
    database: Database, pair: Pair
) -> None:
    walstream = pair.walstream.start().streaming()
    insert(database, 1, 1, LARGE)
    pair.first.count(1)
    walstream.until("streaming to a detached sink")
    walstream.kill()
    insert(database, 2, 5)
    walstream.start().until("streaming to a detached sink")
    pair.first.until(lambda found: {one.new["id"] for one in found} == set("12345"))
    assert len(pair.second.read()) == 0
    assert walstream.terminate() == 0
    assert pair.sink_state() == "detached"
    configuration = walstream.configuration
    done = verb(configuration, "slots", "drop", pair.copy)
    assert "sink other-one of source app, which is detached" in " ".join(
        done.stdout.split()
    )
    done = verb(configuration, "positions", "rewind", "app", "--to", "0/1", "--yes")
    assert (done.returncode, "is detached" in done.stderr) == (2, True)
    done = verb(walstream.configuration, "positions", "reset", "app", "--yes")
    assert done.returncode == 0, done.stderr
    assert slots(database) == []
    assert pair.sink_state() == "stopped"


def test_of_a_lost_copy_the_sink_alone_is_cured(database: Database, pair: Pair) -> None:
    walstream, others = pair.walstream.start().streaming(), pair.walstream.others
    insert(database, 1, 1, LARGE)
    pair.first.count(1)
    walstream.until("streaming to a detached sink")
    assert walstream.terminate() == 0
    done = verb(walstream.configuration, "slots", "drop", pair.copy, "--yes")
    assert "put it back" in done.stdout
    insert(database, 2, 3)
    walstream.start().until("what sink 'other-one' lacks is gone")
    pair.first.count(3)
    told = lambda: any("is lost" in said for said in pair.source()["problems"])  # noqa: E731
    wait_until(told, 30, "status says so")
    assert not walstream.said("positions reset")

    pair.takes(200_000)
    for sinks in ({}, others):
        walstream.others = sinks
        walstream.configuration.write_text(toml(walstream.document()), "utf-8")
        assert verb(walstream.configuration, "reload").returncode == 0
        walstream.until(
            "sink is among the source's sinks again" if sinks else "never gets"
        )
    done = verb(walstream.configuration, "backfill", "public.t", "--replace")
    assert done.returncode == 0, done.stderr
    pair.second.until(
        lambda found: {one.new["id"] for one in found if one.new} == set("123")
    )
    assert slots(database) == [walstream.slot]


def test_a_sink_that_is_to_be_dropped_gets_no_copy_and_is_named(
    database: Database, pair: Pair
) -> None:
    sink = dict(pair.walstream.others["other-one"])
    pair.walstream.others = {"other-one": {**sink, "on_failure": "drop"}}
    walstream = pair.walstream.start().streaming()
    insert(database, 1, 1, LARGE)
    insert(database, 2, 2)
    pair.first.count(2)
    walstream.until("sink is dropped")
    wait_until(lambda: pair.sink_state() == "dropped", 10, "status says so")
    assert slots(database) == [walstream.slot]
    assert walstream.terminate() == 0
    walstream.start().until("sink is dropped: it gets nothing").streaming()
    insert(database, 3, 3)
    pair.first.count(3)
    assert pair.second.read() == []
    told = lambda: any("was dropped" in said for said in pair.source()["problems"])  # noqa: E731
    wait_until(told, 30, "status says so")


def test_a_sink_whose_kafka_hangs_is_detached_while_the_others_go_on(
    database: Database, pair: Pair, own_kafka: OwnKafka
) -> None:
    broker = own_kafka()
    prefix = f"frozen_{token_hex(4)}."
    producer = {"producer": {"bootstrap.servers": broker.bootstrap}}
    other = {"topic": prefix + "{schema}.{table}", **producer}
    pair.walstream.others = {"other-one": other}
    pair.walstream.source = {"detach_after": "3s"}
    walstream = pair.walstream.start().streaming()
    insert(database, 1, 1)
    with Reader(broker.bootstrap, prefix) as second:
        second.count(1)
    broker.freeze()
    for number in range(2, 12):
        insert(database, number, number)
        pair.first.count(number)
    walstream.until("sink is detached")
    assert "behind the others" in walstream.text
    broker.thaw()
    walstream.until("sink is back in the source's stream", 60)
    insert(database, 12, 15)
    names = {record.name for record in pair.first.count(15)}
    with Reader(broker.bootstrap, prefix) as second:
        # what was in flight when it froze may come twice
        second.until(lambda found: {one.name for one in found} == names)
