"""Kafka is away for longer than its transactions last: each record is there once."""

import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fault.test_kill_cycles import kill_worker, settle
from tests.support.fixtures.kafka import KafkaServer, OwnKafka
from tests.support.fixtures.postgres import PostgresServer
from tests.support.fixtures.server_origin import needs_own_servers
from tests.support.fixtures.walstream import Stream, streamed
from tests.support.loads.keyed import TABLE, Load
from tests.support.oracles.op_order import OracleSlot
from tests.support.servers.brief_kafka import BriefKafka
from tests.support.servers.slow_link import SlowLink
from walstream.testing.servers.port import HOST, free_port

pytestmark = [pytest.mark.fault, pytest.mark.same_on_15]


_SEED = int(os.environ.get("WALSTREAM_TEST_SEED") or time.time())
_TIMEOUT_S = 5  # of a Kafka transaction


@dataclass(frozen=True)
class Linked:
    """A broker that clients reach by way of a link."""

    link: SlowLink
    data: Path | None = None

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.link.port}"


@contextmanager
def begun(
    postgres: PostgresServer, broker: KafkaServer, factory: pytest.TempPathFactory
) -> Iterator[Stream]:
    """Stream into partitions of one broker, in brief transactions."""
    producer = {
        "bootstrap.servers": broker.bootstrap,
        "transaction.timeout.ms": f"{_TIMEOUT_S * 1000}",
    }
    sink = {"delivery": "transactional", "topic_partitions": 8, "producer": producer}
    folder = factory.mktemp("outages")
    with streamed(postgres, broker, folder, before=TABLE, sink=sink) as stream:
        yield stream


@pytest.mark.fault_long
@pytest.mark.takes(200)
@pytest.mark.parametrize("outage", ["frozen", "killed", "frozen, then killed"])
def test_transactions_that_end_meanwhile_repeat_nothing(
    outage: str,
    newest_postgres: PostgresServer,
    own_kafka: OwnKafka,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The broker aborts them, or has committed what it never said."""
    broker = own_kafka()
    with begun(newest_postgres, broker, tmp_path_factory) as stream:
        oracle = OracleSlot(stream.database)
        with Load(stream.database.dsn, _SEED) as load:
            for away_s in (0.5, 2.0 * _TIMEOUT_S, 0.2, 1.5 * _TIMEOUT_S):
                load.wait_for_more(20)
                if "frozen" in outage:
                    broker.freeze()
                    time.sleep(away_s)
                    broker.thaw()
                if "killed" in outage:
                    broker.kill()
                    time.sleep(away_s)
                    broker.start()
                load.wait_for_more(20)
        assert settle(stream, oracle) == 0


@pytest.mark.fault_long
@pytest.mark.takes(200)
@pytest.mark.parametrize("end", ["worker", "terminate", "kill"])
def test_an_end_in_an_outage_repeats_nothing(
    end: str,
    newest_postgres: PostgresServer,
    own_kafka: OwnKafka,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """A stop has its deadline; what the broker has by then is left out."""
    broker = own_kafka()
    with begun(newest_postgres, broker, tmp_path_factory) as stream:
        oracle, walstream = OracleSlot(stream.database), stream.walstream
        with Load(stream.database.dsn, _SEED) as load:
            for away_s in (0.0, 0.3, 1.2 * _TIMEOUT_S):
                load.wait_for_more(20)
                broker.freeze()
                time.sleep(away_s)
                if end == "terminate":
                    assert walstream.terminate() == 0
                    walstream.start()
                elif end == "kill":
                    walstream.kill()
                    walstream.start()
                else:
                    kill_worker(walstream.worker_pid())
                time.sleep(1.0)
                broker.thaw()
                walstream.streaming()
                load.wait_for_more(20)
        assert settle(stream, oracle) == 0


@pytest.mark.fault_long
@pytest.mark.takes(200)
@pytest.mark.parametrize("killed", [False, True], ids=["cut", "killed"])
def test_answers_that_are_lost_repeat_nothing(
    *,
    killed: bool,
    newest_postgres: PostgresServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """The broker commits what it was asked for, and nobody hears of it."""
    needs_own_servers()
    port = free_port()
    settings = {"advertised.listeners": f"PLAINTEXT://{HOST}:{port}"}
    choose = random.Random(_SEED)  # noqa: S311 - a test's moments
    with (
        BriefKafka(settings=settings) as kafka,
        SlowLink(kafka.port, port) as link,
        begun(newest_postgres, Linked(link), tmp_path_factory) as stream,
    ):
        oracle, walstream = OracleSlot(stream.database), stream.walstream
        with Load(stream.database.dsn, _SEED) as load:
            stream.reader.until(bool)
            for cycle in range(8):
                load.wait_for_more(10)
                time.sleep(choose.uniform(0.0, 0.3))
                link.rate = 0
                # in one of them the transaction ends before it is heard of
                time.sleep(1.5 * _TIMEOUT_S if cycle == 3 else choose.uniform(0.0, 0.5))
                if killed:
                    kill_worker(walstream.worker_pid())
                link.cut()
                link.rate = None
                load.wait_for_more(10)
        assert settle(stream, oracle) == 0
