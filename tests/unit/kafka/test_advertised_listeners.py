"""Brokers off this machine are refused before any client of theirs is made."""

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.unit.kafka.test_metadata import answer
from walstream.config.tls import Confined
from walstream.errors import Transient
from walstream.kafka.advertised_listeners import BrokersElsewhere, Whereabouts
from walstream.kafka.metadata import read_frame
from walstream.testing.servers.port import free_port

PLAIN = Confined("sinks.k", 'sinks.k.producer."security.protocol"', "plaintext")


class Broker:
    """Answers each connection's first question with the hosts that it is told."""

    def __init__(self, *named: str) -> None:
        self.named = named
        self.asked = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                one, _ = self._listener.accept()
                with one:
                    read_frame(one)
                    self.asked += 1
                    one.sendall(answer(*self.named))

    def close(self) -> None:
        # a thread left in `accept` would take the connections of who gets the number
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._listener.close()


@pytest.fixture
def broker() -> Iterator[Broker]:
    made = Broker("localhost", "127.0.0.1", "::1")
    yield made
    made.close()


def whereabouts(
    servers: str, confined: Confined | None = PLAIN, *, at: list[float] | None = None
) -> Whereabouts:
    now = at or [0.0]
    return Whereabouts({"bootstrap.servers": servers}, confined, lambda: now[0])


def test_brokers_of_this_machine_may_be_asked(broker: Broker) -> None:
    whereabouts(broker.address).look(5)
    assert broker.asked == 1


def test_others_are_named_with_the_sink_and_the_cure(broker: Broker) -> None:
    broker.named = ("localhost", "b.example", "10.0.0.1", "b.example")
    with pytest.raises(BrokersElsewhere) as refused:
        whereabouts(broker.address).look(5)
    what, hint = str(refused.value.args[0]), refused.value.hint
    assert what == (
        "sinks.k: brokers advertise themselves at 10.0.0.1, b.example, which is not"
        " this machine, and plaintext is not encrypted"
    )
    assert 'write "ssl" or "sasl_ssl" as sinks.k.producer."security.protocol"' in hint
    assert "or insecure = true in sinks.k;" in hint
    assert refused.value.exit_code == 2


def test_nobody_is_asked_where_brokers_may_be_anywhere(broker: Broker) -> None:
    broker.named = ("b.example",)
    whereabouts(broker.address, None).look(5)
    assert broker.asked == 0


def test_it_is_asked_once_a_minute_and_again_after_a_failure(broker: Broker) -> None:
    now = [100.0]
    looking = whereabouts(broker.address, at=now)
    looking.look(5)
    now[0] += 59
    looking.look(5)
    assert broker.asked == 1
    now[0] += 1
    broker.named = ("b.example",)  # a broker that came later
    for _ in range(2):
        with pytest.raises(BrokersElsewhere):
            looking.look(5)
    assert broker.asked == 3


def test_servers_are_asked_in_turn_until_one_answers(broker: Broker) -> None:
    broker.named = ("b.example",)
    with pytest.raises(BrokersElsewhere):
        whereabouts(f"127.0.0.1:{free_port()},{broker.address}").look(5)


def test_a_server_that_is_away_is_waited_for_with_the_reason() -> None:
    port = free_port()
    with pytest.raises(Transient) as away:
        whereabouts(f"127.0.0.1:{port}").look(5)
    assert away.value.args[0] == f"connecting to 127.0.0.1:{port}: Connection refused"
    assert away.value.hint.startswith("start the broker")


def test_a_server_that_is_silent_is_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with pytest.raises(Transient, match=f"asking 127.0.0.1:{port} .* timed out"):
            whereabouts(f"127.0.0.1:{port}").look(0.2)
