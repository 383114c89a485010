"""A producer without the binding, which is compiled here, beside the binding's."""

import contextlib
import gc
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, cimpl

from tests.support.deadline import wait_until
from tests.support.programs.compiled_form import needs_a_compiler
from tests.support.programs.native_module import ROOT, compile_native, load_native
from tests.support.servers.mock_kafka import Mocked
from walstream.kafka import native_producer
from walstream.kafka.binding_producer import LOGGER
from walstream.kafka.native_producer import BINDING, NativeProducer
from walstream.kafka.ordered_producer import OrderedProducer
from walstream.kafka.producer_config import producer_properties
from walstream.kafka.topic import Topic
from walstream.pipeline.ledger import Counted

AT_MS = 1795787098651


class Told:
    """Hears of deliveries."""

    def __init__(self) -> None:
        self.missed: list[tuple[int | None, str | None, int | None]] = []

    def hear(
        self, transaction: Counted, error: KafkaError | None, message: Message
    ) -> None:
        raise NotImplementedError

    def count(self, transaction: Counted, records: int) -> None:
        transaction.undelivered -= records

    def miss(
        self, error: KafkaError | None, topic: str | None, partition: int | None
    ) -> None:
        self.missed.append((None if error is None else error.code(), topic, partition))


@pytest.fixture(scope="session")
def module(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    needs_a_compiler()
    return load_native(compile_native(tmp_path_factory.mktemp("native")))


@pytest.fixture
def native(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """Let producers be made with it."""
    monkeypatch.setattr(native_producer, "_module", lambda: module)
    yield module
    gc.collect()


@pytest.fixture
def kafka() -> Mocked:
    made = Mocked()
    made.write("t", 1)
    return made


def producer(servers: str, **properties: object) -> NativeProducer:
    heard: list[KafkaError] = []
    given = {"bootstrap.servers": servers, "linger.ms": 1} | properties
    made = native_producer.native_producer(given, heard.append)
    assert made is not None
    vars(made)["heard"] = heard
    return made


def put(made: NativeProducer, callback: object, partition: int = 0) -> None:
    made.produce("t", b"v", b"k", partition, callback, None, AT_MS, None)


def served(made: NativeProducer, told: Told) -> int:
    """Wait until nothing is in flight; return how many were reported."""
    reported = 0

    def is_over() -> bool:
        nonlocal reported
        made.poll(0.05)
        reported += made.report(told)
        return not len(made)

    wait_until(is_over, 30, "all is reported")
    return reported


@pytest.mark.usefixtures("native")
def test_deliveries_are_counted_by_transaction(kafka: Mocked) -> None:
    made, told = producer(kafka.bootstrap), Told()
    one, two = Counted(), Counted()
    for transaction, records in ((one, 5), (two, 3)):
        transaction.undelivered = records + 1  # of which one is not sent
        callback = made.callback(transaction, told)
        for number in range(records):
            put(made, callback, number % 3)
    assert served(made, told) == 8
    assert (one.undelivered, two.undelivered) == (1, 1)
    assert made.report(told) == 0


def test_a_count_knows_the_offset_of_its_last_record(
    native: ModuleType, kafka: Mocked
) -> None:
    made, told = producer(kafka.bootstrap), Told()
    counts = [native.Count(Counted()) for _ in range(2)]
    assert [count.offset() for count in counts] == [-1, -1]
    for number in range(9):
        made.produce("t", b"v", b"k", number % 2, counts[number % 2])
    assert served(made, told) == 9
    # the broker has a record in each
    assert [count.offset() for count in counts] == [5, 4]


@pytest.mark.usefixtures("native")
def test_a_callback_hears_of_its_record_alone(kafka: Mocked) -> None:
    made, told = producer(kafka.bootstrap), Told()
    heard: list[tuple[Any, Any]] = []
    for partition in (0, 99):
        put(made, lambda *said: heard.append(said), partition)
    assert served(made, told) == 0  # they are told by themselves
    (delivered, lost) = sorted(heard, key=lambda said: said[0] is not None)
    assert delivered[0] is None
    assert delivered[1].offset() == 0
    assert lost[0].code() == KafkaError._UNKNOWN_PARTITION  # noqa: SLF001 - its code
    assert (lost[1].topic(), lost[1].partition(), lost[1].offset()) == ("t", 99, None)


@pytest.mark.usefixtures("native")
def test_what_is_not_delivered_is_told_and_not_counted(kafka: Mocked) -> None:
    made, told = (
        producer(kafka.bootstrap, **{"linger.ms": 900_000, "message.timeout.ms": 0}),
        Told(),
    )
    counted = Counted()
    counted.undelivered = 2
    for _ in range(2):
        put(made, made.callback(counted, told))
    made.purge()
    assert served(made, told) == 2
    purged = KafkaError._PURGE_QUEUE  # noqa: SLF001 - librdkafka's own code
    assert told.missed == [(purged, "t", 0)] * 2
    assert counted.undelivered == 2


@pytest.mark.usefixtures("native")
def test_without_an_offset_a_record_is_not_delivered(kafka: Mocked) -> None:
    """Here since the broker is not to answer; or it never had the record."""
    made, told, counted = producer(kafka.bootstrap, acks=0), Told(), Counted()
    counted.undelivered = 1
    put(made, made.callback(counted, told))
    assert served(made, told) == 1
    assert told.missed == [(None, "t", 0)]
    assert counted.undelivered == 1


@pytest.mark.usefixtures("native")
def test_a_queue_that_is_full_refuses_as_the_bindings_does(kafka: Mocked) -> None:
    few = {
        "queue.buffering.max.messages": 3,
        "linger.ms": 900_000,
        "message.timeout.ms": 0,
    }
    made = producer(kafka.bootstrap, **few)
    callback = made.callback(Counted(), Told())
    for _ in range(3):
        put(made, callback)
    with pytest.raises(BufferError, match="Queue full"):
        put(made, callback)


@pytest.mark.usefixtures("native")
def test_a_partition_that_is_known_not_to_be_there_is_refused(kafka: Mocked) -> None:
    made = producer(kafka.bootstrap)
    made.list_topics("t", 10.0)
    with pytest.raises(KafkaException) as refused:
        put(made, None, 99)
    code = KafkaError._UNKNOWN_PARTITION  # noqa: SLF001 - librdkafka's own
    assert refused.value.args[0].code() == code


@pytest.mark.usefixtures("native")
def test_properties_are_refused_as_the_binding_does() -> None:
    with pytest.raises(KafkaException, match="No such configuration property"):
        producer("127.0.0.1:1", nonsense="1")


@pytest.mark.usefixtures("native")
def test_where_tokens_are_made_here_it_is_the_bindings() -> None:
    given = {"bootstrap.servers": "127.0.0.1:1", "oauth_cb": lambda _: None}
    assert native_producer.native_producer(given, lambda _: None) is None


@pytest.mark.usefixtures("native")
@pytest.mark.parametrize(
    "its_own",
    [
        {"sasl.oauthbearer.metadata.authentication.type": "aws_iam"},
        {"confluent.monitoring.interceptor.topic": "t", "plugin.library.paths": "x"},
    ],
)
def test_what_the_binding_reads_itself_is_left_to_it(its_own: dict[str, str]) -> None:
    given = {"bootstrap.servers": "127.0.0.1:1"} | its_own
    assert native_producer.native_producer(given, lambda _: None) is None


def test_it_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BINDING, "1")
    given = {"bootstrap.servers": "127.0.0.1:1"}
    assert native_producer.native_producer(given, lambda _: None) is None


@pytest.mark.usefixtures("native")
def test_brokers_that_are_away_are_heard_of_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made, told = producer("127.0.0.1:1"), Told()
    heard: list[KafkaError] = vars(made)["heard"]

    def hears() -> bool:
        made.poll(0.05)
        made.report(told)
        return len(heard) > 1

    with caplog.at_level(logging.DEBUG, LOGGER.name):
        wait_until(hears, 30, "it is heard")
    codes = {error.code() for error in heard}
    assert codes >= {KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN}  # noqa: SLF001 - codes
    assert "127.0.0.1:1" in heard[0].str()
    assert any("Connection refused" in record.message for record in caplog.records)
    with pytest.raises(KafkaException):
        made.list_topics("t", 0.1)


@pytest.mark.usefixtures("native")
def test_what_ends_a_producer_is_raised() -> None:
    """A purge of what is in flight leaves a gap, which an idempotent one may not."""
    gapless = {"enable.idempotence": True, "enable.gapless.guarantee": True}
    kafka = Mocked(rtt_ms=500)
    made, told = producer(kafka.bootstrap, **gapless), Told()
    counted = Counted()

    def is_ended() -> bool:
        put(made, made.callback(counted, told))
        made.poll(0.1)
        made.purge()
        made.poll(0.1)
        try:
            made.report(told)
        except KafkaException as error:
            return bool(error.args[0].fatal())
        return False

    wait_until(is_ended, 60, "it ends")


@pytest.mark.usefixtures("native")
def test_a_record_that_waits_may_prove_its_partition(kafka: Mocked) -> None:
    """It waited for Kafka when the partitions came in doubt, as every six hours."""
    given = producer_properties({"bootstrap.servers": kafka.bootstrap}, 1000, 1000)
    made, topic, counted = (
        OrderedProducer("k", given),
        Topic("t", "", 1, 1000),
        Counted(),
    )
    topic.unproven.clear()
    waits = [True]
    made.hold(lambda: not waits)
    made.put(topic, b"v", b"k", 0, AT_MS, counted)
    topic.doubt()
    waits.clear()
    made.serve()
    wait_until(lambda: made.serve() and not counted.undelivered, 30, "it is delivered")
    assert not topic.unproven
    made.close(0)


def test_owners_are_kept_while_records_are_in_flight_alone(
    native: ModuleType, kafka: Mocked
) -> None:
    owner = object()
    before = sys.getrefcount(owner)
    made = native.Producer({"bootstrap.servers": kafka.bootstrap, "linger.ms": "1"})
    for _ in range(100):
        made.produce("t", b"v", None, 0, native.Count(owner), None, 0, [("h", b"x")])
    assert sys.getrefcount(owner) == before + 100
    assert made.flush(10.0) == 0
    assert made.take()[0] == 100
    assert sys.getrefcount(owner) == before
    made.produce("t", b"v", None, 0, native.Count(owner), None, 0, None)
    made.close()
    assert sys.getrefcount(owner) == before
    made.produce("t", b"v", None, 0, native.Count(owner), None, 0, None)
    del made
    assert sys.getrefcount(owner) == before


def test_the_binding_may_be_in_a_folder_of_any_name(
    module: ModuleType, tmp_path: Path
) -> None:
    folder = tmp_path / os.fsdecode(b"\xff")  # which is no UTF-8
    folder.mkdir()
    installed = Path(cimpl.__file__).parent
    for each in installed, installed.with_name(f"{installed.name}.libs"):
        (folder / each.name).symlink_to(each)
    program = (
        f"import sys; from pathlib import Path; sys.path.insert(0, {str(folder)!r});"
        "from tests.support.programs.native_module import load_native;"
        f"load_native(Path({module.__file__!r}))"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_two_threads_are_kept_apart(native: ModuleType) -> None:
    made = native.Producer({"bootstrap.servers": "127.0.0.1:1"})
    began, over = threading.Event(), threading.Event()

    def poll() -> None:
        began.set()
        while not over.is_set():
            with contextlib.suppress(RuntimeError):  # it, too, may be the other one
                made.flush(1.0)

    made.produce("t", b"v", None, 0, None, None, 0, None)
    other = threading.Thread(target=poll)
    other.start()
    began.wait(10)

    def is_refused() -> bool:
        try:
            made.produce("t", b"v", None, 0, None, None, 0, None)
        except RuntimeError as error:
            return "another thread" in str(error)
        return False

    try:
        wait_until(is_refused, 10, "the other one flushes")
    finally:
        over.set()
        other.join()


def test_a_count_belongs_to_one_producer(native: ModuleType) -> None:
    one, two = (native.Producer({"bootstrap.servers": "127.0.0.1:1"}) for _ in range(2))
    count = native.Count(1)
    one.produce("t", b"v", None, 0, count, None, 0, None)
    with pytest.raises(ValueError, match="another producer"):
        two.produce("t", b"v", None, 0, count, None, 0, None)
    del one
    two.produce("t", b"v", None, 0, count, None, 0, None)


@pytest.mark.parametrize(
    "given",
    [
        (),
        ("t", b"v", None, 0),
        ("t", b"v", None, 0, None, None, 0, None, None),
        (None, b"v", None, 0, None, None, 0, None),
        ("t", 5, None, 0, None, None, 0, None),
        ("t", b"v", [], 0, None, None, 0, None),
        ("t", b"v", None, 1 << 40, None, None, 0, None),
        ("t", b"v", None, 0, None, None, 1 << 70, None),
        ("t", b"v", None, 0, None, None, 0, ()),
        ("t", b"v", None, 0, None, None, 0, [("h",)]),
        ("t", b"v", None, 0, None, None, 0, [("h", 5)]),
        ("t", b"v", None, 0, None, None, 0, ["h"]),
    ],
)
def test_anything_else_is_refused_and_not_enqueued(
    native: ModuleType, given: tuple[Any, ...]
) -> None:
    made = native.Producer({"bootstrap.servers": "127.0.0.1:1"})
    with pytest.raises((TypeError, OverflowError)):
        made.produce(*given)
    made.purge()
    made.poll(0.05)
    told = made.take()
    assert told is None or told[0] == 0
