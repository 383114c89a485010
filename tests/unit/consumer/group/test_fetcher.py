"""A membership of a group, with a broker of librdkafka's own."""

import logging
import threading
from contextlib import closing

import pytest
from confluent_kafka import Consumer, Message, TopicPartition

from consumer.group.assigned_partition import AssignedPartition
from consumer.group.fetcher import Fetcher
from consumer.group.settings import FirstOffset, consumer_settings
from consumer.group.topic_start import TopicStart
from tests.support.deadline import wait_until
from tests.support.servers.mock_kafka import PARTITIONS, Mocked
from tests.support.servers.slow_link import SlowLink
from walstream.testing.servers.port import free_port


class Nothing:
    """A work that handles all, and does nothing."""

    wanted = 10
    holds = False

    def begin(self) -> None:
        """Nothing is prepared."""

    def handle(self, messages: list[Message]) -> int:
        return len(messages)

    def rest(self) -> float | None:
        return None

    def end(self) -> None:
        """Nothing is held."""


def test_a_stop_may_come_while_partitions_are_assigned() -> None:
    """From any thread, at any line: here between two steps of the assignment."""
    kafka, wish = Mocked(), threading.Event()
    kafka.write("t", 1)
    stopped: list[BaseException | None] = []

    def stop() -> None:
        wish.set()
        try:
            fetcher.stop()
        except AttributeError as error:
            stopped.append(error)
        else:
            stopped.append(None)

    def make_work(_: AssignedPartition) -> Nothing:
        thread = threading.Thread(target=stop)
        thread.start()
        thread.join(20)
        return Nothing()

    fetcher = Fetcher(
        consumer_settings("g", {"bootstrap.servers": kafka.bootstrap}),
        ["t"],
        make_work,
        wish,
        stop_timeout_s=20,
        threads=1,
    )
    fetcher.run()
    assert stopped
    assert set(stopped) == {None}


@pytest.mark.parametrize("topic", ["t", "t*"])
def test_kafka_away_is_one_line_and_its_return_another(
    topic: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consumer.group.broker_outage._ASK_EVERY_S", 0.1)
    # whatever level a test before this one has set: that it joins is no outage
    caplog.set_level(logging.WARNING, "consumer")
    kafka, wish, port = Mocked(), threading.Event(), free_port()
    kafka.write("t", 1)
    fetcher = Fetcher(
        consumer_settings("g", {"bootstrap.servers": f"127.0.0.1:{port}"}),
        [topic],
        lambda _lane: Nothing(),
        wish,
        stop_timeout_s=20,
        threads=1,
        start=TopicStart(FirstOffset.EARLIEST),
    )
    thread = threading.Thread(target=fetcher.run)
    thread.start()
    try:
        outage = fetcher._outage  # noqa: SLF001 - how much was kept back is nobody's else
        wait_until(lambda: outage._left_out > 20, 30, "it fails and fails")  # noqa: SLF001
        assert len(caplog.messages) == 1
        assert "Connection refused" in caplog.messages[0]
        link = SlowLink(int(kafka.bootstrap.rpartition(":")[2]), port)
        with closing(link):
            wait_until(lambda: len(caplog.messages) > 1, 30, "it is back")
            wait_until(fetcher.lag, 30, "it reads")
            # ended while the link is there: its loss would be another outage
            wish.set()
            thread.join(30)
    finally:
        wish.set()
        thread.join(30)
    away, back, *more = caplog.messages
    assert "no connection to Kafka" in away
    assert "Kafka answers again" in back
    assert not [one for one in more if "no connection" in one]


def test_where_a_partition_begins_at_its_end_is_stored_before_a_record_comes() -> None:
    kafka, wish = Mocked(), threading.Event()
    kafka.write("t", 3)
    settings = consumer_settings(
        "g", {"bootstrap.servers": kafka.bootstrap, "auto.offset.reset": "latest"}
    )
    lanes: list[AssignedPartition] = []

    def make_work(lane: AssignedPartition) -> Nothing:
        lanes.append(lane)
        return Nothing()

    fetcher = Fetcher(
        settings,
        ["t"],
        make_work,
        wish,
        stop_timeout_s=20,
        threads=1,
        start=TopicStart(FirstOffset.LATEST),
    )
    thread = threading.Thread(target=fetcher.run)
    thread.start()
    try:
        wait_until(
            lambda: [lane.begins for lane in lanes] == [3] * PARTITIONS, 30, "stored"
        )
    finally:
        wish.set()
        thread.join(30)
    assert {lane.handled for lane in lanes} == {None}
    with Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": "g"}) as asking:
        where = [TopicPartition("t", number) for number in range(PARTITIONS)]
        assert {one.offset for one in asking.committed(where, timeout=30)} == {3}
