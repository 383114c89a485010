"""The reader that costs a walsender least takes all that is there, unread."""

import socket

from bench.batch_reader import has_more


def test_it_takes_what_is_there_and_goes_on_until_the_end() -> None:
    reader, writer = socket.socketpair()
    reader.setblocking(False)
    with reader, writer:
        block = bytearray(16)
        assert has_more(reader, block)
        writer.sendall(b"x" * 1000)
        assert has_more(reader, block)
        assert has_more(reader, block)
        writer.close()
        assert not has_more(reader, block)
