"""The encoder refuses what no server sends; its bytes are held by the golden ones."""

from typing import cast

import pytest

from walstream.pipeline.pgoutput import Begin, Commit, Insert, Message, decode
from walstream.row import OMITTED
from walstream.testing import encode, keepalive, transaction, wal_data


def test_transaction_is_framed_between_begin_and_commit() -> None:
    frames = transaction(100, Insert(1, ["x"], toasted=False), xid=7)
    messages = [decode(frame[25:]) for frame in frames]
    assert messages[0] == Begin(100, 0, 7)
    assert messages[-1] == Commit(0, 100, 148, 0)
    assert len(messages) == 3


def test_frames_have_the_walsenders_headers() -> None:
    lsn = (5).to_bytes(8, "big")
    assert wal_data(b"payload", 5) == b"w" + lsn + lsn + bytes(8) + b"payload"
    assert keepalive(5, reply=True) == b"k" + lsn + bytes(8) + b"\1"


def test_value_that_stands_for_no_bytes_is_refused() -> None:
    with pytest.raises(TypeError, match="OMITTED"):
        encode(Insert(1, [OMITTED], toasted=False))


def test_what_is_no_message_is_refused() -> None:
    with pytest.raises(TypeError, match="not a pgoutput message"):
        encode(cast("Message", object()))
