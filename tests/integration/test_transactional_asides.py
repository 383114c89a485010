"""Records that belong to no transaction, beside those of one that is long."""

import pytest

from tests.integration.test_transactional import TRANSACTIONAL, insert, raw
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs

pytestmark = pytest.mark.same_on_15


def test_heartbeats_leave_a_long_transaction_whole(
    database: Database, runs: Runs, kafka: KafkaServer, topic_prefix: str
) -> None:
    """Several come while it is open: none of them ends it."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    sink = {
        **TRANSACTIONAL,
        "format": "debezium",
        "topic": topic_prefix + "{schema}.{table}",
        "debezium": {"name": f"beats{topic_prefix}", "heartbeat": "100ms"},
    }
    rows = 100_000
    with runs(database.dsn, sink=sink) as walstream:
        walstream.streaming()
        database.execute(insert(1, rows))
        with raw(kafka, f"{topic_prefix}public.t") as reader:
            reader.until(lambda records: len(records) >= rows, 120)
        assert not walstream.said("defect"), walstream.text
        assert walstream.terminate() == 0
