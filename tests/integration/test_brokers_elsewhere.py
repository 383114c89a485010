"""A bootstrap server here names a broker elsewhere: nobody goes there in plain text.

The broker here is real, and names one at `ELSEWHERE`, which is no loopback address as
it is written, and leads to a socket of the test's own all the same.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.fixtures.server_origin import needs_own_servers
from tests.support.fixtures.tls import check
from tests.support.fixtures.walstream import Runs
from tests.support.programs.relay import Chain
from tests.support.programs.verb import verb
from tests.support.servers.brief_kafka import BriefKafka
from walstream.testing.servers.port import HOST, free_port

ELSEWHERE: Final = "127.1"
_PASSWORD: Final = "aPpPw"  # noqa: S105 - of a broker that ends with the tests
_MODULES: Final = "org.apache.kafka.common.security"
_LOGIN: Final = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "app",
    "sasl.password": _PASSWORD,
}
_WORDS: Final = (f"advertise themselves at {ELSEWHERE}", "insecure = true in s")


class Trap:
    """Where the broker says that it is: remembers what came."""

    def __init__(self) -> None:
        self._listener = socket.create_server((HOST, 0))
        self.port: int = self._listener.getsockname()[1]
        self.caught: list[bytes] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                one, _ = self._listener.accept()
                with one:
                    one.settimeout(1)
                    self.caught.append(b"")
                    with suppress(OSError):
                        self.caught[-1] = one.recv(1 << 16)

    def close(self) -> None:
        self._listener.close()


class MisledKafka(BriefKafka):
    """Has a listener with passwords and one without, both advertised elsewhere.

    A third one, `here`, is advertised where it is.
    """

    def __init__(self, trap: Trap) -> None:
        super().__init__()
        self.trap = trap
        self.logins = self._right = 0
        plain = f"{_MODULES}.plain.PlainLoginModule required"
        self.settings |= {
            "listener.security.protocol.map": (
                "LOGIN:SASL_PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
                "RIGHT:PLAINTEXT"
            ),
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.login.plain.sasl.jaas.config": (
                f'{plain} user_app="{_PASSWORD}";'
            ),
        }

    def _choose_ports(self) -> None:
        super()._choose_ports()
        self.logins, self._right = free_port(), free_port()
        told = f"PLAINTEXT://{HOST}:{self.port},LOGIN://{HOST}:{self.logins}"
        right = f"RIGHT://{self.here}"
        self.settings |= {
            "listeners": f"{told},{right},CONTROLLER://{HOST}:{self._ports[1]}",
            "advertised.listeners": (
                f"{right},PLAINTEXT://{ELSEWHERE}:{self.trap.port},"
                f"LOGIN://{ELSEWHERE}:{self.trap.port}"
            ),
        }

    @property
    def here(self) -> str:
        return f"{HOST}:{self._right}"

    def client(self, *, logs_in: bool, **more: str) -> dict[str, Any]:
        """Give a client's properties."""
        if not logs_in:
            return {"bootstrap.servers": self.bootstrap, **more}
        return {"bootstrap.servers": f"{HOST}:{self.logins}", **_LOGIN, **more}


@pytest.fixture(scope="module")
def kafka() -> Iterator[MisledKafka]:
    needs_own_servers()
    with ExitStack() as stack:
        trap = Trap()
        stack.callback(trap.close)
        yield stack.enter_context(MisledKafka(trap))


@pytest.fixture
def trap(kafka: MisledKafka) -> Iterator[Trap]:
    """Claim that nobody comes there in a test."""
    kafka.trap.caught.clear()
    yield kafka.trap
    assert kafka.trap.caught == []


@pytest.fixture
def database(postgres18: PostgresServer) -> Iterator[Database]:
    with temporary_database(postgres18) as fresh:
        fresh.execute("CREATE TABLE t (id int PRIMARY KEY)")
        yield fresh


@pytest.mark.usefixtures("trap")
@pytest.mark.parametrize("logs_in", [True, False])
def test_a_sink_is_refused_by_check_and_run(
    kafka: MisledKafka, database: Database, runs: Runs, *, logs_in: bool
) -> None:
    walstream = runs(database.dsn, sink={"producer": kafka.client(logs_in=logs_in)})
    check(walstream, 2, "sinks.kafka", *_WORDS)
    walstream.start().ends_with(2, "sinks.kafka", *_WORDS)
    done = verb(walstream.configuration, "tail", "t")
    assert done.returncode == 2
    assert ELSEWHERE in done.stderr
    assert _PASSWORD not in walstream.text + done.stderr


@pytest.mark.usefixtures("trap")
def test_a_kafka_source_is_refused_by_check_and_run(
    kafka: MisledKafka, tmp_path: Path, topic_prefix: str
) -> None:
    chain = Chain(
        kafka.bootstrap,
        kafka.bootstrap,
        tmp_path,
        prefix=topic_prefix,
        topics=["t"],
        source={"consumer": kafka.client(logs_in=True)},
    )
    with closing(chain):
        check(chain, 2, "sources.app", *_WORDS)
        chain.start().ends_with(2, "sources.app", *_WORDS)
    assert _PASSWORD not in chain.text


@pytest.mark.usefixtures("trap")
def test_the_sink_of_a_kafka_source_is_refused(
    kafka: MisledKafka, tmp_path: Path, topic_prefix: str
) -> None:
    chain = Chain(
        kafka.here, kafka.bootstrap, tmp_path, prefix=topic_prefix, topics=["t"]
    )
    with closing(chain):
        check(chain, 2, "sinks.kafka", *_WORDS)
        chain.start().ends_with(2, "sinks.kafka", *_WORDS)


@pytest.mark.usefixtures("trap")
def test_a_wrong_password_is_told_as_ever(
    kafka: MisledKafka, database: Database, runs: Runs
) -> None:
    wrong = kafka.client(logs_in=True, **{"sasl.password": "wrong"})
    walstream = runs(database.dsn, sink={"producer": wrong})
    check(walstream, 4, "uthentication", "correct sasl.username or sasl.password")
    walstream.start().ends_with(4, "uthentication", "correct sasl.username")
    assert "/bootstrap" not in walstream.text  # an address of its own process


def test_insecure_lets_it_go_there(
    kafka: MisledKafka, database: Database, runs: Runs
) -> None:
    producer = kafka.client(logs_in=True)
    walstream = runs(database.dsn, sink={"producer": producer, "insecure": True})
    kafka.trap.caught.clear()
    walstream.start().until("waiting for Kafka")
    assert kafka.trap.caught
