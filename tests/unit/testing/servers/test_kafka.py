"""Kafka's configuration and the question whether it serves: no broker is started."""

import socket
import threading

import pytest

from walstream.testing.servers.kafka import answers_api_versions, render
from walstream.testing.servers.port import HOST, free_port

ANSWER = bytes.fromhex("0000000a 00000001 0000 00000000")


def test_settings_are_escaped_for_a_properties_file() -> None:
    settings = {"node.id": "1", "log.dirs": "a\\b", "x": "1\n2"}
    assert render(settings) == "node.id=1\nlog.dirs=a\\\\b\nx=1\\n2\n"


def test_nobody_who_listens_is_no_answer() -> None:
    assert not answers_api_versions(free_port())


def test_listening_alone_is_no_answer() -> None:
    with socket.create_server((HOST, 0)) as silent:
        assert not answers_api_versions(silent.getsockname()[1], timeout_s=0.05)


@pytest.mark.parametrize(
    ("answer", "serves"),
    [
        (ANSWER, True),
        (ANSWER[:5], False),
        (bytes.fromhex("0000000a 00000001 0023 00000000"), False),
        (b"HTTP/1.1 400 Bad Request\r\n", False),
    ],
    ids=["served", "cut short", "refused", "other protocol"],
)
def test_broker_serves_once_it_answers_without_error(
    answer: bytes, serves: bool
) -> None:
    with socket.create_server((HOST, 0)) as server:
        thread = threading.Thread(target=_answer_once, args=(server, answer))
        thread.start()
        assert answers_api_versions(server.getsockname()[1]) is serves
        thread.join()


def _answer_once(server: socket.socket, answer: bytes) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(64)
        connection.sendall(answer)
