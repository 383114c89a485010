"""What is given up raises nothing; how records are sent is seen by a task's tests."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from tests.support.programs.compiled_form import needs_a_compiler
from tests.support.programs.native_module import compile_native, load_native
from tests.support.servers.mock_kafka import PARTITIONS, Mocked
from walstream.errors import Transient, WalstreamError
from walstream.kafka import native_producer
from walstream.kafka.binding_producer import BindingProducer
from walstream.kafka.bulk_producer import BulkProducer, Outgoing
from walstream.kafka.errors import SizeRefused

NOWHERE = {"bootstrap.servers": "127.0.0.1:1"}


class EndedProducer(Producer):
    """One that gave up records in flight under `enable.gapless.guarantee`."""

    def poll(self, timeout: float = -1) -> int:  # noqa: ARG002 - as its base
        raise KafkaException(KafkaError(KafkaError._GAPLESS_GUARANTEE, fatal=True))  # noqa: SLF001 - its public name


class EndedBulkProducer(BulkProducer):
    def _open(self) -> BindingProducer:
        return BindingProducer(NOWHERE, print, EndedProducer)


def test_a_producer_that_gives_up_does_not_hide_why_it_had_to() -> None:
    sender = EndedBulkProducer(Outgoing("rows", {}), lambda: None)
    sender.abandon()


class Said:
    """The message of a report that tells no offset."""

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 0

    def offset(self) -> None:
        return None


class SilentProducer(Producer):
    """One whose records are reported without an offset."""

    def produce(self, *record: Any, **_: Any) -> None:
        record[4](None, Said())


class SilentBulkProducer(BulkProducer):
    def _open(self) -> BindingProducer:
        return BindingProducer(NOWHERE, print, SilentProducer)


@pytest.mark.parametrize("aside", [False, True])
def test_a_record_of_which_no_offset_is_told_counts_as_not_delivered(
    aside: bool,
) -> None:
    sender = SilentBulkProducer(Outgoing("rows", {}), lambda: None)
    if aside:
        sender.send_aside("t", b"v", b"k", 0)
    else:
        sender.send("t", b"v", b"k", 0)
    with pytest.raises(Transient, match="did not say where it is"):
        sender.serve(0)


class Told(Said):
    """The message of a report that tells one."""

    def __init__(self, partition: int) -> None:
        self._partition = partition

    def partition(self) -> int:
        return self._partition

    def offset(self) -> None:
        return 7  # type: ignore[return-value]


class SlowProducer(Producer):
    """One that acknowledges what it has when it is flushed."""

    sent: list[tuple[bytes, int, int]]
    reports: list[Any]

    def produce(self, *record: Any) -> None:
        self.sent.append((record[1], record[3], len(record[7])))
        self.reports.append((record[4], record[3]))

    def poll(self, _timeout: float = 0) -> int:
        return 0

    def flush(self, _timeout: float = 0) -> int:
        self.sent.append((b"flush", -1, 0))
        while self.reports:
            report, partition = self.reports.pop(0)
            report(None, Told(partition))
        return 0

    def __len__(self) -> int:
        return len(self.reports)


class SlowBulkProducer(BulkProducer):
    def _open(self) -> BindingProducer:
        made = BindingProducer(NOWHERE, print, SlowProducer)
        assert isinstance(made.client, SlowProducer)
        made.client.sent, made.client.reports = self.wire, []
        return made

    def __init__(self, outgoing: Outgoing) -> None:
        self.wire: list[tuple[bytes, int, int]] = []
        super().__init__(outgoing, lambda: None)


def test_the_first_record_in_a_partition_is_acknowledged_alone() -> None:
    sender = SlowBulkProducer(Outgoing("rows", {}, headers=(("s", b"1"),)))
    for value, partition in ((b"1", 0), (b"2", 1), (b"3", 0), (b"4", 0), (b"5", 1)):
        sender.send("t", value, b"k", partition)
    first = [(b"1", 0, 1), (b"2", 1, 1), (b"flush", -1, 0)]
    assert sender.wire == [*first, (b"3", 0, 0), (b"4", 0, 0), (b"5", 1, 0)]
    sender.sent = 5
    sender.finish()


def test_a_producer_that_is_used_again_proves_each_partition_again() -> None:
    sender = SlowBulkProducer(Outgoing("rows", {}))
    sender.send("t", b"1", b"k", 0)
    sender.send("t", b"2", b"k", 0)
    sender.sent = 2
    sender.finish()
    sender.begin(lambda: None)
    del sender.wire[:]
    assert 0 not in sender.reports
    for value in (b"3", b"4"):
        sender.send("other", value, b"k", 0)
    assert [one[0] for one in sender.wire] == [b"3", b"flush", b"4"]


class LateProducer(Producer):
    """One whose coordinator answers at the fourth question."""

    asked = 0

    def commit_transaction(self, *wait_s: float) -> None:
        assert wait_s == (1.0,)
        LateProducer.asked += 1
        if LateProducer.asked < 4:
            late = KafkaError._TIMED_OUT  # noqa: SLF001 - theirs
            raise KafkaException(KafkaError(late, "late", False, True))


class LateBulkProducer(BulkProducer):
    def _open(self) -> BindingProducer:
        made = BindingProducer(NOWHERE, print, LateProducer)
        self._fenced = made.client
        return made


@pytest.mark.parametrize("stops_at", [0, 3])
def test_a_stop_is_heard_while_a_chunk_is_committed(stops_at: int) -> None:
    LateProducer.asked = 0

    def check() -> None:
        if stops_at and LateProducer.asked == stops_at:
            raise Transient("stopped")

    sender = LateBulkProducer(Outgoing("rows", {}), check, "chunk")
    if stops_at:
        with pytest.raises(Transient, match="stopped"):
            sender.finish()
    else:
        sender.finish()
    assert LateProducer.asked == (stops_at or 4)


@pytest.fixture(scope="session")
def module(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    needs_a_compiler()
    return load_native(compile_native(tmp_path_factory.mktemp("native")))


@pytest.fixture(params=["binding", "native"])
def sender(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., BulkProducer]:
    """Make one in this form, beside a broker of its own."""
    native = request.param == "native"
    found = request.getfixturevalue("module") if native else None
    monkeypatch.setattr(native_producer, "_module", lambda: found)
    kafka = Mocked()
    monkeypatch.setattr(request.node, "kafka", kafka, raising=False)

    def make(more: dict[str, Any], **given: Any) -> BulkProducer:
        properties = {"bootstrap.servers": kafka.bootstrap, "linger.ms": 5, **more}
        made = BulkProducer(Outgoing("rows", properties, **given), lambda: None)
        is_native = type(made._client).__name__ == "NativeProducer"  # noqa: SLF001 - which form it is
        assert is_native == native
        return made

    return make


def read(bootstrap: str, records: int) -> list[Any]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "g",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe(["t"])
    found: list[Any] = []
    while len(found) < records:
        found += consumer.consume(records - len(found), 5)
    consumer.close()
    return found


@pytest.mark.parametrize("standing", [(), (("every", b"2"),)])
def test_both_forms_send_the_same_and_know_the_last_offsets(
    request: pytest.FixtureRequest,
    sender: Callable[..., BulkProducer],
    standing: tuple[tuple[str, bytes], ...],
) -> None:
    made = sender({}, headers=(("first", b"1"),), standing=standing)
    rounds = 25
    for number in range(rounds * PARTITIONS):
        partition = number % PARTITIONS
        record = "t", b"%d" % number, None if number % 3 else b"k", partition
        try:
            made.produce(*record, made.reports[partition])
        except KeyError:
            made.send(*record)
    made.sent = rounds * PARTITIONS
    made.finish()
    assert made.last == dict.fromkeys(range(PARTITIONS), rounds - 1)
    found = read(request.node.kafka.bootstrap, made.sent)
    assert {int(one.value()): one.key() for one in found} == {
        number: None if number % 3 else b"k" for number in range(made.sent)
    }
    for one in found:
        wanted = [("first", b"1")] if one.offset() == 0 else []
        assert (one.headers() or []) == [*wanted, *standing]
    made.begin(lambda: None)
    assert (made.last, made.reports) == ({}, {})


def test_a_record_that_is_not_delivered_fails_the_task(
    sender: Callable[..., BulkProducer],
) -> None:
    made = sender({})

    def send() -> None:
        for partition in (0, PARTITIONS + 5):  # of which there is none
            made.send("t", b"v", b"k", partition)
        made.sent = 2
        made.finish()

    # by the last, or at once where the topic is known already
    with pytest.raises(WalstreamError, match=f"partition {PARTITIONS + 5}"):
        send()
    assert list(made.reports) in ([0], [])
    made.abandon()


def test_a_partition_that_is_known_to_be_missing_fails_the_task_likewise(
    sender: Callable[..., BulkProducer],
) -> None:
    """As of a topic that was created again with fewer."""
    made = sender({})
    made.send("t", b"v", b"k", 0)
    made.sent = 1
    made.finish()
    made.begin(lambda: None)

    def send() -> None:
        made.send("t", b"v", b"k", PARTITIONS + 5)
        made.sent = 1
        made.finish()

    with pytest.raises(WalstreamError, match=f"'t' partition {PARTITIONS + 5}"):
        send()
    made.abandon()


def test_a_refused_record_is_the_cause_also_behind_what_it_took_along(
    sender: Callable[..., BulkProducer],
) -> None:
    made = sender({})
    for code in (KafkaError._FATAL, KafkaError.MSG_SIZE_TOO_LARGE, KafkaError._FATAL):  # noqa: SLF001 - librdkafka's local codes are spelt so
        made.miss(KafkaError(code), "t", 0)
    with pytest.raises(SizeRefused):
        made.serve(0)
    made.abandon()


def test_what_goes_aside_is_counted_and_has_no_last(
    sender: Callable[..., BulkProducer],
) -> None:
    made = sender({})
    made.send_aside("parked", b"v", b"k", 0)
    made.finish()
    assert (made.sent, made.last) == (1, {})


def test_the_last_record_may_be_empty(sender: Callable[..., BulkProducer]) -> None:
    """The binding's message is false there: it has a length, its value's."""
    made = sender({})
    for value in (b"x", b""):
        made.send("t", value, b"k", 0)
    made.sent = 2
    made.finish()
    assert made.last == {0: 1}


def test_a_queue_that_is_full_is_waited_for(
    sender: Callable[..., BulkProducer],
) -> None:
    made = sender({"queue.buffering.max.messages": 5})
    for number in range(200):
        made.send("t", b"%d" % number, b"k", 0)
    made.sent = 200
    made.finish()
    assert made.last == {0: 199}
