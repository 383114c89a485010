"""The topic of transactions says what the other topics hold, whatever was killed."""

import json
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, PostgresServer
from tests.support.fixtures.walstream import Runs, streamed
from tests.support.oracles.topic_reader import Reader, Record, TopicAdmin
from tests.support.programs.operator import Operator, found
from tests.support.selection import shortened

PARTITIONS: Final = 4
KILLS: Final = 4
TABLES: Final = """
CREATE TABLE t (id int PRIMARY KEY, v text);
CREATE TABLE u (id int PRIMARY KEY, v text)
"""
TRANSACTION: Final = """BEGIN;
INSERT INTO t SELECT i, 'a' FROM generate_series({1}, {3}) AS i;
INSERT INTO u VALUES ({0}, 'a');
UPDATE t SET id = id + 5 WHERE id = {1};
UPDATE u SET v = 'b' WHERE id = {0} - 1;
DELETE FROM t WHERE id = {2};
COMMIT
"""
CASES: Final[dict[str, dict[str, Any]]] = {
    "op": {},
    "debezium": {"format": "debezium", "debezium": {"name": "app"}},
    "handlers": {"handlers": [{"kind": "passthrough"}], "batch_rows": 7},
}
Place = tuple[str, int]  # topic and partition


@contextmanager
def written(database: Database) -> Iterator[None]:
    """Write transactions of several tables meanwhile."""
    over = threading.Event()

    def write() -> None:
        for number in range(1, 10_000):
            if over.is_set():
                return
            first = number * 10
            database.execute(TRANSACTION.format(number, first, first + 1, first + 4))
            if number % 7 == 0:
                database.execute("TRUNCATE u")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        over.set()
        writer.join(60)
    assert not writer.is_alive()


class Topics:
    """What the topics hold: ops by transaction and partition, and what is told."""

    def __init__(self, records: list[Record], told: str) -> None:
        self.told: dict[int, dict[str, Any]] = {}  # by commit LSN, as first told
        self.marks: list[dict[str, Any]] = []
        self.order: list[int] = []
        self.repeated = 0
        # by transaction and place: the first offset of each op
        self.ops: dict[Any, dict[Place, dict[Any, int]]] = defaultdict(
            lambda: defaultdict(dict)
        )
        for record in records:
            value: Any = record.op
            if record.topic != told:
                if value is not None:
                    self._take(record, value)
            elif "resolved" in value:
                self.marks.append(value)
            elif value["lsn"] in self.told:
                self.repeated += 1
                assert value == self.told[value["lsn"]]
            else:
                self.told[value["lsn"]] = value
                self.order.append(value["lsn"])

    def _take(self, record: Record, value: dict[str, Any]) -> None:
        place = record.topic, record.partition
        transaction, name = self._names(record, value)
        self.ops[transaction][place].setdefault(name, record.offset)

    @staticmethod
    def _names(record: Record, value: dict[str, Any]) -> tuple[Any, Any]:
        """Return the transaction's name and the op's; that of Debezium is the xid."""
        source = value.get("source")
        if source is None:
            return value["lsn"], value["seq_id"]
        return f"xid {source['txId']}", (source["lsn"], value["op"], record.key)

    def of(self, told: dict[str, Any]) -> dict[Place, dict[Any, int]]:
        return self.ops.get(told["lsn"]) or self.ops[f"xid {told['xid']}"]

    def are_as_told(self) -> None:
        """Claim that each transaction is told, in order, and each mark is right."""
        assert self.order == sorted(self.order)
        assert len(self.told) == len(self.ops)
        for one in self.told.values():
            there = Counter({place: len(ops) for place, ops in self.of(one).items()})
            assert counts(one) == there
            assert one["end_lsn"] > one["lsn"]
        for mark in self.marks:
            for one in self.told.values():
                if one["lsn"] < mark["resolved"]:
                    for (topic, partition), ops in self.of(one).items():
                        assert max(ops.values()) < mark["next"][topic][partition]


def has_grown(wanted: int, records: list[Record]) -> bool:
    return len(records) >= wanted


def has_last(records: list[Record]) -> bool:
    return any(b"-1" in (record.key or b"") for record in records)


def is_resolved(told: str, records: list[Record]) -> bool:
    """Return whether a mark stands above each transaction, of which each is told."""
    found = Topics(records, told)
    if not found.marks or len(found.told) < len(found.ops):
        return False
    return bool(found.marks[-1]["resolved"] > max(found.told))


def counts(told: dict[str, Any]) -> Counter[Place]:
    return Counter(
        {
            (topic, int(partition)): count
            for topic, found in told["rows"].items()
            for partition, count in found.items()
        }
    )


@pytest.mark.parametrize(
    "case", shortened(CASES.values(), *list(CASES.values())[:2]), ids=list(CASES)
)
def test_counts_are_what_the_topics_have_though_it_is_killed(
    postgres18: PostgresServer,
    kafka: KafkaServer,
    tmp_path: Path,
    topic_prefix: str,
    case: dict[str, Any],
) -> None:
    told = f"{topic_prefix}told"
    sink = {
        "txinfo": told,
        "txinfo_form": "walstream",
        "resolved": "200ms",
        "topic_partitions": PARTITIONS,
        "tombstones": True,
        "on_truncate": "send",
        **case,
    }
    with streamed(
        postgres18,
        kafka,
        tmp_path,
        prefix=topic_prefix,
        before=TABLES,
        sink=sink,
        decode=lambda value: value and json.loads(value),
    ) as stream:
        walstream, reader = stream.walstream, stream.reader
        with written(stream.database):
            for _ in range(KILLS):
                reader.until(partial(has_grown, len(reader.read()) + 200))
                walstream.kill()
                walstream.start().streaming()
        stream.database.execute("INSERT INTO u VALUES (-1, 'last')")
        reader.until(has_last, what="the last row")
        reader.until(partial(is_resolved, told), what="a mark above all that is told")
        assert TopicAdmin(kafka.bootstrap).partitions(told) == 1
        whole = Topics(reader.read(), told)

    whole.are_as_told()
    for mark in whole.marks:
        assert told not in mark["next"]
        assert {len(ends) for ends in mark["next"].values()} == {PARTITIONS}
    assert len(whole.marks) > KILLS


def test_a_sink_that_was_detached_tells_the_same(
    postgres18: PostgresServer, kafka: KafkaServer, tmp_path: Path, topic_prefix: str
) -> None:
    admin, prefix = TopicAdmin(kafka.bootstrap), f"other_{topic_prefix}"
    told = f"{prefix}told"
    admin.create(f"{prefix}public.u", 1, max_message_bytes="2000")
    other = {
        "topic": prefix + "{schema}.{table}",
        "txinfo": told,
        "resolved": "200ms",
        "topic_partitions": PARTITIONS,
    }
    with (
        streamed(
            postgres18,
            kafka,
            tmp_path,
            prefix=topic_prefix,
            before=TABLES,
            others={"other": other},
        ) as stream,
        Reader(kafka.bootstrap, prefix, json.loads) as reader,
    ):
        with written(stream.database):
            reader.until(partial(has_grown, 200))
            large = "INSERT INTO u VALUES (-2, repeat('x', 5000))"
            stream.database.execute(large)
            stream.walstream.until("streaming to a detached sink")
            admin.configure(f"{prefix}public.u", "max.message.bytes", "200000")
            stream.walstream.until("sink is back in the source's stream", 60)
            reader.until(partial(has_grown, len(reader.read()) + 200))
        stream.database.execute("INSERT INTO u VALUES (-1, 'last')")
        reader.until(has_last, what="the last row")
        reader.until(partial(is_resolved, told), what="a mark above all that is told")
        Topics(reader.read(), told).are_as_told()
        assert stream.walstream.terminate() == 0


def test_a_topic_of_several_partitions_is_refused_and_cured_as_printed(
    database: Database, runs: Runs, reader: Reader, tmp_path: Path
) -> None:
    database.execute(TABLES)
    told, admin = f"{runs.prefix}told", TopicAdmin(runs.bootstrap)
    admin.create(told, 3)
    walstream = runs(database.dsn, sink={"txinfo": told, "topic_partitions": 3})
    walstream.start().ends_with(2, told, "has 3 partitions", "walstream check")
    report = Operator(tmp_path / "operator").check(walstream)
    assert report["exit_code"] == 2
    command = found(report, "topic-single")["repair"]["command"]
    assert command.endswith(f"--delete --topic {told}")

    admin.delete(told)
    walstream.start().streaming()
    assert admin.partitions(told) == 1
    assert reader.read() == []
    assert walstream.terminate() == 0
