"""Tokens of SASL/OAUTHBEARER that live for seconds, on a listener that checks them.

Kafka's own unsecured tokens: it looks at who they are for and when they expire, and
cuts who has no newer one by then (connections.max.reauth.ms).
"""

import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import OwnKafka
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.fixtures.walstream import Runs
from tests.support.programs.verb import verb
from tests.support.programs.walstream import toml
from walstream.config.oauth import OAuth, with_oauth
from walstream.kafka.oauth_token import prepared
from walstream.testing.servers import LocalKafka

_LIFE_S = 5
_MODULE = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
    ' unsecuredLoginStringClaim_sub="admin";'
)
_BROKER = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "OAUTHBEARER",
    "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
    "listener.name.plaintext.oauthbearer.sasl.jaas.config": _MODULE,
    "listener.name.plaintext.oauthbearer.connections.max.reauth.ms": "4000",
}
_PRINTS = """
import base64, json, sys, time
def part(told):
    return base64.urlsafe_b64encode(json.dumps(told).encode()).rstrip(b"=").decode()
now = time.time()
claims = {"sub": "app", "iat": now, "exp": now + float(sys.argv[2])}
token = part({"alg": "none"}) + "." + part(claims) + "."
open(sys.argv[1], "a").write("x")
life = float(sys.argv[2])
print(json.dumps({"token": token, "expires_in": life, "principal": "app"}))
"""


@pytest.fixture
def database(postgres18: PostgresServer) -> Iterator[Database]:
    with temporary_database(postgres18) as fresh:
        yield fresh


@pytest.fixture
def broker(own_kafka: OwnKafka) -> LocalKafka:
    return own_kafka(_BROKER)


class Login:
    """A command that prints tokens, and what its clients are told."""

    def __init__(self, broker: LocalKafka, folder: Path) -> None:
        script, self._count = folder / "token.py", folder / "count"
        script.write_text(_PRINTS)
        self.oauth = {
            "provider": "command",
            "command": [sys.executable, str(script), str(self._count), str(_LIFE_S)],
        }
        self.properties = {
            "bootstrap.servers": broker.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
        }

    def printed(self) -> int:
        """Tell how often."""
        return len(self._count.read_text())

    def read(self, topic: str, count: int) -> None:
        """Wait until a topic has so many records, and claim that it has no more."""
        told = with_oauth(self.properties, OAuth.model_validate(self.oauth))
        reader = Consumer({**prepared(told), "group.id": "tests"})
        with closing(reader):
            reader.assign([TopicPartition(topic, 0, 0)])
            read: list[object] = []

            def arrived() -> bool:
                message = reader.poll(0.1)
                if message is not None and message.error() is None:
                    read.append(message)
                return len(read) >= count

            wait_until(arrived, 60, f"{count} records in {topic}")
            assert reader.poll(1.0) is None


@pytest.fixture
def login(broker: LocalKafka, tmp_path: Path) -> Login:
    return Login(broker, tmp_path)


def test_each_client_has_tokens_and_the_next_one_in_time(
    broker: LocalKafka, login: Login, database: Database, runs: Runs
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    walstream = runs(
        database.dsn,
        bootstrap=broker.bootstrap,
        source={"backfill": "initial"},  # by the driver, with producers of its own
        sink={"producer": login.properties, "oauth": login.oauth},
    )
    walstream.configuration.write_text(toml(walstream.document()), "utf-8")
    done = verb(walstream.configuration, "check")
    assert done.returncode == 0, done.stdout
    walstream.start().until("streaming", 150)
    login.read(f"{walstream.prefix}public.t", 1)
    # every token of the start has expired by then
    printed = login.printed()
    wait_until(lambda: login.printed() > printed + 3, 60, "tokens are made anew")
    database.execute("INSERT INTO t VALUES (2)")
    login.read(f"{walstream.prefix}public.t", 2)
    assert not walstream.said("trying again"), walstream.text
    assert walstream.terminate() == 0
    assert "eyJ" not in walstream.text  # how every token begins


def test_a_command_that_fails_is_told(
    broker: LocalKafka, login: Login, database: Database, runs: Runs
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    oauth = {"provider": "command", "command": [sys.executable, "-c", "exit(7)"]}
    walstream = runs(
        database.dsn,
        bootstrap=broker.bootstrap,
        sink={"producer": login.properties, "oauth": oauth},
    )
    walstream.configuration.write_text(toml(walstream.document()), "utf-8")
    done = verb(walstream.configuration, "check")
    assert done.returncode != 0
    assert "ended with code 7" in " ".join(done.stdout.split())
