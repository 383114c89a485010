"""Free ports on loopback."""

import socket

from walstream.testing.servers.port import HOST, free_port, is_free


def test_free_port_can_be_bound() -> None:
    with socket.socket() as server:
        server.bind((HOST, free_port()))


def test_free_port_is_none_that_the_kernel_hands_out() -> None:
    with socket.socket() as given:
        given.bind((HOST, 0))
        assert free_port() < given.getsockname()[1]


def test_port_that_is_listened_to_is_not_free() -> None:
    with socket.create_server((HOST, 0)) as server:
        assert not is_free(server.getsockname()[1])


def test_ports_of_one_server_differ() -> None:
    assert len({free_port() for _ in range(150)}) == 150
