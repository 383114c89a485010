"""A password of Kafka's that is revoked while it streams: told why, and read anew."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exports, undeclared
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.fixtures.server_origin import needs_own_servers
from tests.support.fixtures.walstream import Runs
from tests.support.servers.brief_kafka import BriefKafka
from walstream.status.instance import running
from walstream.status.worker_state import WorkerState
from walstream.testing.servers import LocalKafka

_MODULES: Final = "org.apache.kafka.common.security"
_PLAIN: Final = f"{_MODULES}.plain.PlainLoginModule required"
_SETTINGS: Final = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": (
        f'{_PLAIN} username="admin" password="admin" user_admin="admin";'
    ),
    "listener.name.plaintext.scram-sha-256.sasl.jaas.config": (
        f"{_MODULES}.scram.ScramLoginModule required;"
    ),
    # who stays is asked again, too: who is idle is cut
    "connections.max.idle.ms": "2000",
}
_TOLD_S: Final = 10.0 + 3.0  # the next login is due within the latter


@pytest.fixture(scope="module")
def kafka() -> Iterator[LocalKafka]:
    needs_own_servers()
    with ExitStack() as stack:
        yield stack.enter_context(BriefKafka(settings=_SETTINGS))


@pytest.fixture
def database(postgres18: PostgresServer) -> Iterator[Database]:
    with temporary_database(postgres18) as fresh:
        fresh.execute("CREATE TABLE t (id int PRIMARY KEY)")
        yield fresh


def alter(bootstrap: str, password: str) -> None:
    """Have the broker want another password of `app`."""
    admin = AdminClient(
        {
            "bootstrap.servers": bootstrap,
            "security.protocol": "sasl_plaintext",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "admin",
            "sasl.password": "admin",
        }
    )
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    wanted = UserScramCredentialUpsertion("app", info, password.encode())
    admin.alter_user_scram_credentials([wanted])["app"].result(30)


def test_a_revoked_password_is_told_and_its_successor_read(
    runs: Runs, database: Database, tmp_path: Path
) -> None:
    alter(runs.bootstrap, "oNePw")
    file = tmp_path / "password"
    file.write_text("oNePw")
    login: dict[str, Any] = {
        "bootstrap.servers": runs.bootstrap,
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": "app",
        "sasl.password": f"${{file:{file}}}",
    }
    walstream = runs(database.dsn, sink={"producer": login})
    walstream.top = {"shutdown_timeout": "1s"}
    walstream.start().streaming()
    database.execute("INSERT INTO t VALUES (1)")

    def app() -> WorkerState:
        found = running(walstream.folder / "state")
        assert found is not None
        return found.sources["app"]

    def delivered() -> int | None:
        stream = app().report.stream
        return stream.delivered if stream else None

    wait_until(lambda: delivered() == 1, 30, "it is delivered")
    first = walstream.worker_pid()
    alter(runs.bootstrap, "tWoPw")
    wait_until(
        lambda: any("sasl.password" in said for said in app().stalls),
        _TOLD_S,
        "the refusal is told",
    )
    assert any("uthentication" in said for said in app().stalls)
    assert any(
        "uthentication" in str(one.get("error")) and "sasl.password" in one["hint"]
        for one in walstream.said("Kafka")
        if one.get("hint")
    )
    database.execute("INSERT INTO t VALUES (2)")
    assert walstream.worker_pid() == first
    file.write_text("tWoPw")

    def again() -> bool:
        return delivered() == 2 and app().pid not in {None, first}

    wait_until(again, 60, "it delivers with the new password")
    assert "oNePw" not in walstream.text
    assert "tWoPw" not in walstream.text
    assert walstream.terminate() == 0
