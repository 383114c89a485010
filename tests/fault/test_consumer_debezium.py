"""Each op of walstream's envelopes takes effect once, through kills of walstream."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from consumer import IdempotentConsumer, Op, Transaction
from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import PostgresServer, temporary_database
from tests.support.fixtures.walstream import streamed
from tests.support.loads.typed import TABLES, TypedLoad
from tests.support.programs.consumer_thread import Running

pytestmark = pytest.mark.fault

_KILLS = 3
_WAIT_S = 120
# a second effect of an op violates the key, and stops the consumer
APPLIED = """
CREATE TABLE applied (topic text, lsn numeric, seq_id numeric,
  PRIMARY KEY (topic, lsn, seq_id))
"""
BURST = "INSERT INTO loose SELECT n, NULL, %s FROM generate_series(1, 5000) n"
Name = tuple[str, int, int]


def note(tx: Transaction, op: Op) -> None:
    assert op.exact
    values = (op.record.topic, op.lsn, op.seq_id)
    tx.execute("INSERT INTO applied VALUES (%s, %s, %s)", values)


def holds(text: bytes, records: list[Any]) -> bool:
    return any(text in (one.value or b"") for one in records)


def name_of(record: Any) -> Name:
    lsn, seq_id = dict(record.headers)["walstream-position"].split(b"/")
    return record.topic, int(lsn), int(seq_id)


def test_what_a_killed_walstream_sends_again_takes_effect_once(
    newest_postgres: PostgresServer, kafka: KafkaServer, tmp_path: Path
) -> None:
    own = {"name": "app", "schemas": False}
    sink = {
        "format": "debezium",
        "debezium": own,
        "topic_partitions": 3,
        "skip_delivered": False,
    }
    with (
        temporary_database(newest_postgres) as target,
        streamed(
            *(newest_postgres, kafka, tmp_path),
            before=TABLES,
            sink=sink,
            decode=lambda value: value,
        ) as stream,
    ):
        target.execute(APPLIED)
        walstream, prefix = stream.walstream, stream.walstream.prefix
        with IdempotentConsumer(
            note,
            target.dsn,
            group=prefix,
            topics=f"{prefix}*",
            kafka={
                "bootstrap.servers": kafka.bootstrap,
                "fetch.wait.max.ms": 10,
                "topic.metadata.refresh.interval.ms": 500,
            },
        ) as consumer:
            running = Running(consumer)
            with TypedLoad(stream.database, seed=3, pause_s=0.003) as load:
                walstream.streaming()
                for number in range(_KILLS):
                    load.wait_for_more(50)
                    # what was delivered of it is confirmed a little later
                    stream.database.execute(BURST, f"burst {number}")
                    text = b"burst %d" % number
                    stream.reader.until(partial(holds, text))
                    walstream.kill()
                    load.wait_for_more(20)
                    walstream.start()
            stream.database.execute("INSERT INTO wiped VALUES (1000, 'the end')")
            stream.reader.until(partial(holds, b"the end"))

            def names() -> list[Name]:
                found: list[Any] = [*stream.reader.read()]
                return [name_of(one) for one in found if one.value is not None]

            def applied() -> set[Name]:
                rows = target.fetch("SELECT topic, lsn, seq_id FROM applied")
                return {(topic, int(lsn), int(seq_id)) for topic, lsn, seq_id in rows}

            wait_until(
                lambda: running.error or applied() == set(names()),
                _WAIT_S,
                "each op takes effect",
            )
        running.join()
        assert running.error is None
        sent = names()
        assert len(sent) > len(set(sent)), "no kill made walstream send an op again"
