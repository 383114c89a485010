"""The socket of the driver: whole messages, an end that is told, one user alone."""

import os
import select
import socket
import tempfile
import threading
from pathlib import Path

import pytest

from walstream.errors import PermissionLacking
from walstream.spark.driver import transport

NOBODY = 65534


def test_a_message_of_any_size_arrives_whole() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        message = {"chunks": list(range(500_000))}
        sending = threading.Thread(target=transport.send, args=(ours, message))
        sending.start()
        assert transport.receive(theirs) == message
        sending.join()


def test_an_end_amid_a_message_is_the_end() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        with ours:
            ours.sendall(b"\0\0\0\0\0\0\0\x09half")
        with pytest.raises(EOFError):
            transport.receive(theirs)


def test_who_listens_is_found_by_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 40)  # longer than an address may be
    folder.mkdir()
    for _ in range(2):  # the second finds what the first one left
        listener = transport.listen(folder)
        assert (folder / transport.SOCKET).stat().st_mode & 0o777 == 0o600
        with listener, transport.connect(folder) as ours:
            theirs, _ = listener.accept()
            transport.check_peer(theirs)
            transport.send(ours, "word")
            assert transport.receive(theirs) == "word"
            theirs.close()
    with pytest.raises(ConnectionRefusedError):
        transport.connect(folder)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can")
def test_another_users_process_does_not_come_so_far() -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)  # whatever the folder lets in
        with (
            transport.listen(folder) as listener,
            socket.socket(socket.AF_UNIX) as theirs,
        ):
            assert listener.getsockname()[0] != "\0"  # an abstract name asks nobody
            os.seteuid(NOBODY)
            try:
                with pytest.raises(PermissionError):
                    theirs.connect(str(folder / transport.SOCKET))
            finally:
                os.seteuid(0)
            assert not select.select([listener], [], [], 0)[0]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can")
def test_another_users_process_is_refused() -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)
        with (
            transport.listen(folder) as listener,
            socket.socket(socket.AF_UNIX) as ours,
        ):
            (folder / transport.SOCKET).chmod(0o666)
            os.seteuid(NOBODY)
            try:
                ours.connect(str(folder / transport.SOCKET))
            finally:
                os.seteuid(0)
            listener.settimeout(10)
            theirs, _ = listener.accept()
            with theirs, pytest.raises(PermissionLacking):
                transport.check_peer(theirs)
