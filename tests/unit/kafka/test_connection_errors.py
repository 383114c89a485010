"""Of what librdkafka says of an outage the cause is told, once, with its cure."""

import contextlib
import logging
import socket
import threading

import pytest
from confluent_kafka import KafkaError, Producer
from structlog.testing import capture_logs

from tests.support.deadline import wait_until
from walstream.kafka.certificate import CertificateProbe
from walstream.kafka.connection_errors import ConnectionErrors, outage
from walstream.pipeline.outage import Outage
from walstream.testing.servers.port import free_port

AUTHENTICATION = KafkaError._AUTHENTICATION  # noqa: SLF001 - spelt so
DOWN = KafkaError._ALL_BROKERS_DOWN  # noqa: SLF001 - likewise
CUT = KafkaError._TRANSPORT  # noqa: SLF001 - likewise
TLS = KafkaError._SSL  # noqa: SLF001 - likewise
GARBLED = KafkaError._BAD_MSG  # noqa: SLF001 - likewise
UNVERIFIED = (
    "ssl://h:9093/bootstrap: SSL handshake failed: error:0A000086:SSL routines::"
    "certificate verify failed: broker certificate could not be verified (after 2ms in"
    " state SSL_HANDSHAKE)"
)


class Found(CertificateProbe):
    """Knows what is wrong with it."""

    def __init__(self) -> None:
        super().__init__({})
        self.asked: list[tuple[str, int]] = []

    def at(self, host: str, port: int) -> Outage | None:
        self.asked.append((host, port))
        return Outage("it has expired", "renew it", refused=True)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("code", "text", "hint", "refused"),
    [
        (
            AUTHENTICATION,
            "x/1: invalid credentials with SASL mechanism",
            "sasl.password",
            True,
        ),
        (AUTHENTICATION, "x/1: Unsupported mechanism", "sasl.mechanism", True),
        (TLS, UNVERIFIED, "ssl.ca.location", True),
        (TLS, "x/1: sslv3 alert certificate unknown", "ssl.key.location", True),
        (TLS, "x/1: client SSL authentication might be", "ssl.key.location", True),
        (
            AUTHENTICATION,
            "Failed to acquire SASL OAUTHBEARER token: …",
            "`oauth` makes",
            True,
        ),
        (AUTHENTICATION, 'x/1: {"status":"invalid_token"}', "`oauth` makes", True),
        (KafkaError._RESOLVE, "x/1: Failed to resolve", "DNS", False),  # noqa: SLF001
        (
            CUT,
            "x/1: Connect: Connection refused",
            "start the broker",
            False,
        ),
        (
            CUT,
            "x/1: Receive failed: SSL routines::ssl/tls alert certificate expired",
            "ssl.key.location",
            True,
        ),
        (CUT, "x/1: SSL routines::certificate verify failed", "ssl.ca.location", True),
        (CUT, "x/1: connecting to a PLAINTEXT broker", "security.protocol", False),
        (CUT, "x/1: Connection setup timed out", "firewall", False),
        (DOWN, "1/1 brokers are down", "security.protocol", False),
        (
            GARBLED,
            "x/1: Receive failed: Invalid response size 9 (0..8)",
            "by itself",
            False,
        ),
        (KafkaError.UNKNOWN, "x", "by itself", False),
    ],
)
def test_each_cause_has_its_own_next_step(
    code: int, text: str, hint: str, *, refused: bool
) -> None:
    found = outage(KafkaError(code, text))
    assert hint in found.hint
    assert found.refused == refused
    assert not found.why.startswith("x/1")


def test_the_password_is_told_though_the_cut_was_heard_first_and_each_once() -> None:
    hearing = ConnectionErrors(Found())
    with capture_logs() as logs:
        for code in (CUT, DOWN, AUTHENTICATION, CUT, AUTHENTICATION):
            hearing.hear(KafkaError(code, f"said {code}"))
            hearing.log("in trouble", sink="k")
    assert [one["event"] for one in logs] == ["in trouble", "Kafka says another reason"]
    assert [one["error"] for one in logs] == [f"said {CUT}", f"said {AUTHENTICATION}"]
    assert {one["sink"] for one in logs} == {"k"}
    assert hearing.outage == outage(
        KafkaError(AUTHENTICATION, f"said {AUTHENTICATION}")
    )
    hearing.end()
    assert not hearing
    assert hearing.outage is None


def test_a_cause_that_is_heard_no_more_gives_way_to_a_later_one() -> None:
    clock = Clock()
    hearing = ConnectionErrors(Found(), clock=clock)
    hearing.hear(KafkaError(AUTHENTICATION, "a"))
    clock.now = 61.0
    assert hearing.outage is not None
    assert hearing.outage.why == "a"
    hearing.hear(KafkaError(CUT, "b"))
    assert hearing.outage.why == "b"


def test_a_certificate_is_looked_at_before_it_is_told() -> None:
    look, said = Found(), list[str]()
    hearing = ConnectionErrors(look, lambda: said.append("heard"))
    hearing.hear(KafkaError(TLS, UNVERIFIED))
    assert hearing
    wait_until(lambda: said, 10, "it was looked at")
    assert look.asked == [("h", 9093)]
    assert hearing.outage == Outage("it has expired", "renew it", refused=True)


def test_what_librdkafka_says_of_nobody_who_listens() -> None:
    hearing, port = ConnectionErrors(Found()), free_port()
    producer = Producer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "log_level": 0,
            "error_cb": hearing.hear,
        }
    )

    def heard() -> bool:
        producer.poll(0.1)
        return hearing.all_down and hearing.outage is not None

    wait_until(heard, 10, "it is heard")
    assert hearing.outage is not None
    assert hearing.outage.why.endswith("failed: Connection refused")


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 400 Bad", b"E\0\0\0\x90SFATAL", b"\xff" * 8]
)
def test_another_program_at_the_brokers_port_is_called_so(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    with server.accept()[0] as client:
                        client.recv(100)
                        client.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        hearing = ConnectionErrors(Found())
        address = f"127.0.0.1:{server.getsockname()[1]}"
        told = {"bootstrap.servers": address, "error_cb": hearing.hear}
        asking = Producer({**told, "logger": logging.getLogger("librdkafka")})

        def heard() -> str:
            asking.poll(0.1)
            return hearing.outage.why if hearing.outage else ""

        wait_until(lambda: "answer that is not Kafka's" in heard(), 20, "it is told")
        found = hearing.outage
        server.shutdown(socket.SHUT_RDWR)
    assert found is not None
    assert address in found.why
    assert "receive.message.max.bytes" not in found.why
    assert "another program" in found.hint
    assert "security.protocol" in found.hint
