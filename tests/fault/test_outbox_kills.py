"""Killed at random moments, walstream loses no event of an outbox of many topics."""

import os
import random
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.fault.test_kill_cycles import kill_worker
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import PostgresServer
from tests.support.fixtures.walstream import Stream, streamed
from tests.support.loads.events import TABLE, EventLoad
from tests.support.oracles.topic_reader import Record

pytestmark = pytest.mark.same_on_15

_SEED = int(os.environ.get("WALSTREAM_TEST_SEED") or time.time())


def test_sigkills_lose_no_event(
    postgres18: PostgresServer, kafka: KafkaServer, tmp_path: Path
) -> None:
    killed(postgres18, kafka, tmp_path, kills=2, topics=40)


@pytest.mark.fault_long
@pytest.mark.takes(900)
def test_fifty_sigkills_with_five_hundred_topics_lose_no_event(
    postgres18: PostgresServer, kafka: KafkaServer, tmp_path: Path
) -> None:
    killed(postgres18, kafka, tmp_path, kills=50, topics=500)


def killed(
    server: PostgresServer, kafka: KafkaServer, folder: Path, *, kills: int, topics: int
) -> None:
    print(f"seed {_SEED}")  # noqa: T201 - to replay a failure
    choose = random.Random(_SEED)  # noqa: S311 - a test's moments
    prefix = f"kills_{_SEED}."
    outbox = {"kind": "outbox", "tables": ["*.outbox"], "topic": prefix + "{value}"}
    with streamed(
        server,
        kafka,
        folder,
        before=TABLE,
        prefix=prefix,
        sink={"topic_partitions": 2, "handlers": [outbox]},
        decode=int,
    ) as stream:
        with EventLoad(stream.database.dsn, _SEED, topics) as load:
            for cycle in range(kills):
                time.sleep(choose.uniform(0.0, 1.5))
                kill(stream, choose, worker=bool(cycle % 2))
                load.wait_for_more(5)
            stream.walstream.worker_pid()
        complete(stream, load)
        assert len({topic for topic, _ in load.sent}) > topics * 0.9


def kill(stream: Stream, choose: random.Random, *, worker: bool) -> None:
    walstream = stream.walstream
    if worker:
        kill_worker(walstream.worker_pid())
        return
    walstream.kill()
    walstream.start()
    if choose.random() < 0.7:
        walstream.streaming()


def complete(stream: Stream, load: EventLoad) -> None:
    """Claim that each event of each key is there, and behind the one before it."""
    stream.reader.until(
        lambda records: newest(stream, records) >= load.sent, 300, "each key's last"
    )
    assert stream.walstream.terminate() == 0, stream.walstream.text
    records = sorted(
        stream.reader.read(), key=lambda one: (one.topic, one.partition, one.offset)
    )
    seen: Counter[tuple[str, str]] = Counter()
    for record in records:
        number = int(record.value)
        place = place_of(stream, record)
        assert number <= seen[place] + 1, (place, number, seen[place])
        seen[place] = max(seen[place], number)
    assert seen == load.sent


def newest(stream: Stream, records: Iterable[Record]) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for record in records:
        place = place_of(stream, record)
        found[place] = max(found[place], int(record.value))
    return found


def place_of(stream: Stream, record: Record) -> tuple[str, str]:
    return record.topic.removeprefix(stream.walstream.prefix), record.key.decode()
