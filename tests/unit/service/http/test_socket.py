"""An address is taken whole, or refused with its key."""

import pytest

from walstream.errors import ConfigError
from walstream.service.http.socket import listen, said


def test_a_port_that_is_taken_is_said_with_its_key() -> None:
    (taken,) = listen("127.0.0.1:0")
    with taken, pytest.raises(ConfigError, match=r"http.listen: .* is not available"):
        listen(said(taken))


def test_localhost_is_every_address_of_it() -> None:
    sockets = listen("localhost:0")
    assert sockets
    for one in sockets:
        one.close()
