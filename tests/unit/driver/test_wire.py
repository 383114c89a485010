"""The socket of the driver: whole messages, an end that is told, one user alone."""

import os
import socket
import threading

import pytest

from walstream.driver import wire
from walstream.errors import PermissionLacking

NOBODY = 65534


def test_a_message_of_any_size_arrives_whole() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        message = {"chunks": list(range(500_000))}
        sending = threading.Thread(target=wire.send, args=(ours, message))
        sending.start()
        assert wire.receive(theirs) == message
        sending.join()


def test_an_end_amid_a_message_is_the_end() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        with ours:
            ours.sendall(b"\0\0\0\0\0\0\0\x09half")
        with pytest.raises(EOFError):
            wire.receive(theirs)


def test_who_listens_is_found_by_its_address() -> None:
    with wire.listen() as listener:
        with wire.connect(wire.address(listener)) as ours:
            theirs, _ = listener.accept()
            wire.check_peer(theirs)
            wire.send(ours, "word")
            assert wire.receive(theirs) == "word"
            theirs.close()
        where = wire.address(listener)
    with pytest.raises(ConnectionRefusedError):
        wire.connect(where)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can")
def test_another_users_process_is_refused() -> None:
    with wire.listen() as listener, socket.socket(socket.AF_UNIX) as ours:
        os.seteuid(NOBODY)
        try:
            ours.connect(bytes.fromhex(wire.address(listener)))
        finally:
            os.seteuid(0)
        theirs, _ = listener.accept()
        with theirs, pytest.raises(PermissionLacking):
            wire.check_peer(theirs)
