"""Kafka to Kafka: records arrive as they were, in the partition that they were in."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.chaining import Chain, shown, stored
from tests.fix_kafka import KafkaServer
from tests.producing import Feed, insert, truncate
from tests.reading import Reader, TopicAdmin
from tests.waiting import wait_until
from walstream.op import Table

pytestmark = pytest.mark.kafka
ORIGIN = "7123/shop/0"
WIDE = Table("s", "item", ("id", "n"))


def _as_it_is(value: bytes | None) -> bytes | None:
    return value


@pytest.fixture
def upstream(kafka: KafkaServer, topic_prefix: str) -> str:
    name = f"{topic_prefix}up"
    TopicAdmin(kafka.bootstrap).create(name, 3)
    return name


@pytest.fixture
def feed(kafka: KafkaServer, upstream: str) -> Feed:
    return Feed(kafka.bootstrap, upstream)


@pytest.fixture
def reader(kafka: KafkaServer, topic_prefix: str) -> Iterator[Reader]:
    with Reader(kafka.bootstrap, topic_prefix, _as_it_is) as opened:
        yield opened


@pytest.fixture
def chain(
    kafka: KafkaServer, tmp_path: Path, topic_prefix: str, upstream: str
) -> Iterator[Callable[..., Chain]]:
    made: list[Chain] = []

    def make(**options: Any) -> Chain:
        options.setdefault("topics", [upstream])
        folder = tmp_path / f"chain{len(made)}"
        made.append(
            Chain(kafka.bootstrap, kafka.bootstrap, folder, topic_prefix, **options)
        )
        return made[-1]

    yield make
    for one in made:
        one.close()


def copy_of(reader: Reader, count: int, topic: str) -> list[Any]:
    reader.until(
        lambda records: sum(one.topic == topic for one in records) >= count,
        what=f"{count} in {topic}",
    )
    reader.read()
    return shown(reader.records, topic)


def test_records_pass_on_as_they_are(
    chain: Callable[..., Chain], feed: Feed, reader: Reader, topic_prefix: str
) -> None:
    big = '{"table_name":"item","col_names":["id"],"lsn":9007199254740993,"seq_id":0,"op":{"Insert":["9007199254740993"]}, "more" : 1}'
    for number in range(30):
        feed.insert(number, number % 3, ORIGIN if number < 3 else "")
    feed.send_raw(big.encode(), 1, b"\xff\x00")
    feed.send_raw(None, 2, b'["2"]')
    for partition in range(3):
        feed.send(truncate(2000, 3), partition)
    feed.flush()
    with chain():
        copied = copy_of(reader, 35, f"{topic_prefix}copy.public.item")
    assert copied == shown(reader.records, feed.topic)
    assert len(copied) == 35
