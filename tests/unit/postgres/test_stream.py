"""START_REPLICATION, quoted: it takes no parameters. And frames, as libpq has them."""

from collections.abc import Callable, Iterator
from os import pipe, read, write
from struct import unpack
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from tests.support.postgres_error import failed_result
from tests.support.runtime import altered
from walstream.errors import HistoryError, PublicationLost, Transient
from walstream.pipeline.pgoutput import LogicalMessage, decode
from walstream.pipeline.pgoutput.frame import HEADER_SIZE
from walstream.pipeline.pgoutput.large_value import LARGE_FRAME, LargeFrame
from walstream.postgres.server import Server
from walstream.postgres.stream import SlotSource, start_command
from walstream.testing import wal_data


def test_command_names_slot_position_and_publications() -> None:
    assert start_command("s", 0x1_0000_00AB, ["p", "p_insert"]) == (
        'START_REPLICATION SLOT "s" LOGICAL 1/AB'
        " (proto_version '1', publication_names '\"p\",\"p_insert\"')"
    )


@pytest.mark.parametrize(
    ("publication", "quoted"),
    [
        ("plain", '"plain"'),
        ("Mixed Case", '"Mixed Case"'),
        ('a"b', '"a""b"'),
        ("a'b", "\"a''b\""),
        ("a,b", '"a,b"'),
        ("a\\b", '"a\\b"'),
        ("a\nb", '"a\nb"'),
        ("é", '"é"'),
        ("'); DROP TABLE t; --", "\"''); DROP TABLE t; --\""),
    ],
)
def test_hostile_publication_stays_one_name(publication: str, quoted: str) -> None:
    command = start_command("s", 0, [publication])
    assert command.endswith(f"publication_names '{quoted}')")


def test_hostile_slot_stays_one_name() -> None:
    assert 'SLOT "a"" LOGICAL 0/0 --" LOGICAL' in start_command(
        'a" LOGICAL 0/0 --', 0, ["p"]
    )


class Libpq:
    """What libpq has read: frames that are whole."""

    ssl_in_use = False
    nonblocking = 0

    def __init__(self, *frames: bytes) -> None:
        self.frames = list(frames)
        self.pgconn = self
        self.socket = 0  # any that can be asked

    def get_copy_data(self, _: int) -> tuple[int, memoryview]:
        if not self.frames:
            return 0, memoryview(b"")
        frame = self.frames.pop(0)
        return len(frame), memoryview(frame)

    def consume_input(self) -> None: ...

    def add_notice_handler(self, _: object) -> None: ...


def reading(*frames: bytes) -> SlotSource:
    connection: Any = Libpq(*frames)
    server: Any = FAST
    return SlotSource(connection, server, start=0)


FAST = type("Fast", (), {"status_interval_s": 10.0, "wal_sender_timeout_ms": 60_000})()


def test_a_large_frame_is_the_last_that_is_read_together() -> None:
    small = wal_data(b"Ismall", 1)
    large = wal_data(b"I" + bytes(LARGE_FRAME), 2)
    source = reading(small, large, small)
    first, second = source.read(500)
    assert first == small
    assert isinstance(second, LargeFrame)
    assert source.received == 2
    assert second.take() == large[25:]
    assert source.read(500) == [small]


def test_a_large_message_that_is_no_row_is_read_as_it_is() -> None:
    content = bytes(LARGE_FRAME)
    size = len(content).to_bytes(4, "big")
    emitted = wal_data(b"M\1" + bytes(8) + b"prefix\0" + size + content, 2)
    (found,) = reading(emitted).read(500)
    message = decode(found, HEADER_SIZE)
    assert isinstance(message, LogicalMessage)
    assert message.content == content


def test_frames_that_are_read_together_are_bounded_in_bytes() -> None:
    frame = wal_data(b"I" + bytes(200_000), 1)
    source = reading(*[frame] * 50)
    found = source.read(500)
    assert len(found) == 6
    assert sum(map(len, found)) < 2 << 20
    while found:
        found = source.read(500)
    assert source.received == 1


class Told(Libpq):
    """A connection on which nothing comes but notices."""

    tell: Callable[[Any], None]

    def add_notice_handler(self, handler: Any) -> None:
        self.tell = handler


def source_told(**fields: str) -> SlotSource:
    connection: Any = Told()
    server: Any = FAST
    source = SlotSource(connection, server, start=1)
    connection.tell(SimpleNamespace(**fields))
    return source


@pytest.mark.parametrize(
    "said",
    [
        'skipped loading publication "walstream"',
        "überspringe das Laden der Publikation »walstream«",
        'パブリケーション"walstream"の読み込みをスキップしました',
    ],
)
def test_a_publication_that_is_gone_is_heard_of_in_any_language(said: str) -> None:
    told = source_told(
        sqlstate="55000",
        message_primary=said,
        source_file="pgoutput.c",
        source_function="LoadPublications",
    )
    with pytest.raises(PublicationLost) as lost:
        told.read(1)
    assert said in str(lost.value)


@pytest.mark.parametrize("state", ["55000", "22023"])
def test_a_standby_that_is_waited_for_is_no_lost_publication(state: str) -> None:
    told = source_told(
        sqlstate=state,
        message_primary='replication slot "publication" specified in parameter'
        ' "synchronized_standby_slots" does not have active_pid',
        source_file="slot.c",
        source_function="StandbySlotsHaveCaughtup",
    )
    assert told.read(1) == []


class Fed(Libpq):
    """A server that hears status updates, and sends parts of a frame or whole ones."""

    def __init__(self, *frames: bytes) -> None:
        super().__init__(*frames)
        self.heard: list[tuple[int, int, int, bool]] = []
        reader, self.far = pipe()
        self.socket = reader

    def put_copy_data(self, status: bytes) -> None:
        tag, write, flush, apply, _, reply = unpack("!cQQQqB", status)
        assert tag == b"r"
        self.heard.append((write, flush, apply, bool(reply)))

    def flush(self) -> None: ...


class Feedback:
    """A stream on a clock that a test sets."""

    def __init__(self, timeout_ms: int = 60_000) -> None:
        self.now = 1000.0
        self.server = Fed()
        given: Any = self.server
        known: Any = SimpleNamespace(
            wal_sender_timeout_ms=timeout_ms, status_interval_s=10.0
        )
        self.source = SlotSource(given, known, start=100)

    def receive(self, lsn: int) -> None:
        self.server.frames.append(wal_data(b"I", lsn))
        assert self.source.read(1)

    @property
    def heard(self) -> list[tuple[int, int, int, bool]]:
        """What the server heard since this was asked last."""
        heard, self.server.heard = self.server.heard, []
        return heard


@pytest.fixture
def stream() -> Iterator[Feedback]:
    made: list[Feedback] = []
    with altered(monotonic=lambda: made[0].now if made else 1000.0):
        made.append(Feedback())
        yield made[0]


def test_a_status_tells_what_was_received_and_confirms_nothing(
    stream: Feedback,
) -> None:
    stream.receive(500)
    stream.source.keep_alive()
    assert stream.heard == [(500, 0, 0, True)]
    stream.now += 9.9
    stream.source.keep_alive()
    assert stream.heard == []
    stream.now += 0.2
    stream.source.keep_alive()
    assert stream.heard == [(500, 0, 0, True)]
    stream.source.ask()
    stream.source.keep_alive()
    stream.source.keep_alive(now=True)  # an answer: another would be asked for ever
    assert stream.heard == [(500, 0, 0, True), (500, 0, 0, False)]


def test_a_confirmation_behind_what_was_received_lets_the_server_shut_down(
    stream: Feedback,
) -> None:
    stream.receive(500)
    stream.source.confirm(300)
    assert stream.heard == [(500, 300, 300, False), (500, 0, 0, False)]
    stream.source.confirm(500)
    assert stream.heard == [(500, 500, 500, False)]


def test_a_confirmation_never_goes_back(stream: Feedback) -> None:
    stream.receive(500)
    stream.source.confirm(500)
    assert stream.heard
    stream.source.confirm(400)
    stream.source.confirm(500)
    assert stream.heard == []


def test_silence_ends_the_stream_and_a_part_of_a_frame_is_none(
    stream: Feedback,
) -> None:
    stream.now += 59
    assert stream.source.read(1) == []
    write(stream.server.far, b"a part of a frame")
    stream.now += 59
    assert stream.source.read(1) == []
    read(stream.server.socket, 99)
    stream.now += 59
    assert stream.source.read(1) == []
    stream.now += 2
    with pytest.raises(Transient, match="silent for 60 s"):
        stream.source.read(1)


def test_a_pause_is_no_silence(stream: Feedback) -> None:
    stream.now += 100
    stream.source.still_paused()
    assert stream.source.read(1) == []


def test_a_server_that_may_be_busy_for_longer_may_be_silent_for_longer() -> None:
    stream = Feedback(timeout_ms=200_000)
    with altered(monotonic=lambda: stream.now):
        stream.source.still_paused()
        stream.now += 199
        assert stream.source.read(1) == []
        stream.now += 2
        with pytest.raises(Transient):
            stream.source.read(1)


class Ended(Fed):
    """A server whose error comes together with the last frames."""

    def __init__(self, *frames: bytes, words: str, state: str = "57P01") -> None:
        super().__init__(*frames)
        self.words, self.state = words, state

    def get_copy_data(self, _: int) -> tuple[int, memoryview]:
        found = super().get_copy_data(_)
        return found if found[0] else (-1, memoryview(b""))

    def get_result(self) -> Any:
        return failed_result(self.state, self.words)

    def put_copy_data(self, status: bytes) -> None:
        raise psycopg.OperationalError(
            "sending copy data failed: no COPY in progress", status
        )


def test_the_servers_words_are_told_though_frames_came_with_them() -> None:
    """Status updates between two reads would meet libpq's own refusal."""
    connection: Any = Ended(wal_data(b"I", 500), words="terminating connection")
    server: Any = FAST
    source = SlotSource(connection, server, start=0)
    assert len(source.read(9)) == 1
    source.keep_alive()
    source.keep_alive(now=True)
    source.confirm(400)
    with pytest.raises(Transient, match=r"terminating connection \(57P01\)"):
        source.read(9)


@pytest.mark.parametrize("state", ["22012", "22P05", "54000"])
def test_what_no_later_try_can_decode_stops_the_source(state: str) -> None:
    connection: Any = Ended(words="words", state=state)
    server: Any = FAST
    source = SlotSource(connection, server, start=0xAB)
    with pytest.raises(HistoryError, match=rf"after 0/AB .* words \({state}\)"):
        source.read(9)


@pytest.mark.parametrize(
    ("timeout_ms", "interval_s"), [(0, 10.0), (60_000, 10.0), (6_000, 2.0), (300, 0.1)]
)
def test_status_updates_come_well_before_the_server_gives_up(
    timeout_ms: int, interval_s: float
) -> None:
    server = Server(
        system_identifier=1,
        timeline=1,
        database="d",
        in_recovery=False,
        wal_level="logical",
        encoding="UTF8",
        wal_sender_timeout_ms=timeout_ms,
        may_replicate=True,
        flush_lsn=0,
    )
    assert server.status_interval_s == interval_s
