"""START_REPLICATION, quoted: it takes no parameters. And frames, as libpq has them."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from walstream.errors import PublicationLost
from walstream.pipeline.pgoutput.large_value import LARGE_FRAME, LargeFrame
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
