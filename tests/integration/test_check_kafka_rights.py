"""Logins and ACLs: `check` says what the producer's user lacks, as `run` ends."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # re-exports, undeclared
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.fixtures.server_origin import needs_own_servers
from tests.support.fixtures.walstream import Runs
from tests.support.programs.operator import Operator, codes, findings, found
from tests.support.programs.verb import as_json
from tests.support.programs.walstream import Walstream, toml
from tests.support.servers.brief_kafka import BriefKafka
from tests.support.servers.kafka_tools import allow, client
from walstream.testing.servers import LocalKafka

_PASSWORD: Final = "aPpPw"  # noqa: S105 - of a broker that ends with the tests
_PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule required"
_SETTINGS: Final = {
    # the listener keeps its name: only what is spoken there is another
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": (
        f'{_PLAIN} username="admin" password="admin" user_admin="admin"'
        f' user_app="{_PASSWORD}";'
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin;User:ANONYMOUS",  # the latter is the controller's
}
_ADMIN: Final = f"""\
security.protocol=SASL_PLAINTEXT
sasl.mechanism=PLAIN
sasl.jaas.config={_PLAIN} username="admin" password="admin";
"""

pytestmark = pytest.mark.fault_long


@pytest.fixture(scope="module")
def kafka() -> Iterator[LocalKafka]:
    """Start a broker that asks who one is, and what one may."""
    needs_own_servers()
    with ExitStack() as stack:
        yield stack.enter_context(BriefKafka(settings=_SETTINGS))


@pytest.fixture
def database(postgres18: PostgresServer) -> Iterator[Database]:
    with temporary_database(postgres18) as fresh:
        fresh.execute("CREATE TABLE t (id int PRIMARY KEY)")
        yield fresh


@pytest.fixture
def operator(tmp_path: Path) -> Operator:
    made = Operator(tmp_path / "operator")
    (made.folder / "admin.properties").write_text(_ADMIN)
    return made


def logged_in(
    runs: Runs, database: Database, password: str = _PASSWORD, **sink: Any
) -> Walstream:
    login: dict[str, Any] = {
        "bootstrap.servers": runs.bootstrap,
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "app",
        "sasl.password": password,
    }
    return runs(database.dsn, sink={"producer": login, **sink})


def test_a_wrong_password_is_found_and_not_shown(
    runs: Runs, database: Database, operator: Operator
) -> None:
    report = operator.check(logged_in(runs, database, "wRoNgPw"))
    assert found(report, "kafka-login")["exit_code"] == report["exit_code"] == 4
    assert "wRoNgPw" not in json.dumps(report)


def test_a_wrong_password_ends_run(runs: Runs, database: Database) -> None:
    walstream = logged_in(runs, database, "wRoNgPw").start()
    walstream.ends_with(4, "Authentication failed", timeout_s=60)
    assert "wRoNgPw" not in walstream.text


def test_rights_are_granted_as_printed_until_it_streams(
    runs: Runs, database: Database, operator: Operator
) -> None:
    walstream = logged_in(runs, database)
    report = operator.check(walstream)
    assert "may not be described" in found(report, "topic-rights")["what"]
    assert report["exit_code"] == 4
    walstream.start().ends_with(4, "TOPIC_AUTHORIZATION_FAILED")

    operator.run(found(report, "topic-rights")["repair"]["command"])
    report = wait_for(operator, walstream, "topic-creation")
    assert report["exit_code"] == 4
    walstream.start().ends_with(4, "creating topic")

    operator.run(found(report, "topic-creation")["repair"]["command"])
    report = wait_for(operator, walstream, "topics-to-create")
    assert report["ok"], findings(report)
    walstream.start().streaming()
    walstream.until("configuration cannot be read")
    assert walstream.terminate() == 0

    report = operator.check(walstream)
    operator.run(found(report, "topic-configuration")["repair"]["command"])
    wait_until(
        lambda: not codes(operator.check(walstream)) & {"topic-configuration"},
        10,
        "its configuration may be read",
    )


def test_a_topic_that_may_only_be_seen_ends_run(
    runs: Runs, database: Database, operator: Operator
) -> None:
    topic = f"{runs.prefix}public.t"
    admin = client(runs.bootstrap, str(operator.folder / "admin.properties"))
    admin.create_topics([NewTopic(topic, 1)])[topic].result(30)
    (granted,) = allow(admin, "User:app", topic, [AclOperation.DESCRIBE])
    granted.result(30)
    walstream = logged_in(runs, database)
    report = wait_for(operator, walstream, "topic-configuration")
    assert "may not be written" in found(report, "topic-rights")["what"]
    assert report["exit_code"] == 4
    walstream.start().streaming()
    database.execute("INSERT INTO t VALUES (1)")
    walstream.ends_with(4, "AUTHORIZATION_FAILED")


def test_rights_of_transactions_are_granted_as_printed(
    runs: Runs, database: Database, operator: Operator
) -> None:
    """One after the other: what `check` prints makes it stream, and nothing less."""
    positions = f"{runs.prefix}positions"
    own = {"delivery": "transactional", "positions_topic": positions}
    walstream = logged_in(runs, database, **own)
    admin = client(runs.bootstrap, str(operator.folder / "admin.properties"))
    every = [AclOperation.DESCRIBE, AclOperation.WRITE, AclOperation.CREATE]
    every.append(AclOperation.DESCRIBE_CONFIGS)
    for topic in (f"{runs.prefix}public.t", positions):
        for granted in allow(admin, "User:app", topic, every):
            granted.result(30)
    report = wait_for(operator, walstream, "transactions")
    lacking = found(report, "transactions")
    assert lacking["exit_code"] == report["exit_code"] == 4
    assert "prefixed" in lacking["repair"]["command"]
    walstream.start().ends_with(4, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED")

    operator.run(lacking["repair"]["command"])
    report = wait_for(operator, walstream, "topic-rights")
    assert "may not be read" in found(report, "topic-rights")["what"]
    walstream.start().ends_with(4, "Read on the topic")

    operator.run(found(report, "topic-rights")["repair"]["command"])
    wait_until(lambda: operator.check(walstream)["ok"], 20, "nothing is lacking")
    walstream.start().streaming()
    database.execute("INSERT INTO t VALUES (1)")
    assert walstream.terminate() == 0  # which waits for what was committed


def test_a_timeout_that_brokers_refuse_is_found(
    runs: Runs, database: Database, operator: Operator
) -> None:
    walstream = logged_in(runs, database, delivery="transactional")
    producer = walstream.sink["producer"]
    producer["transaction.timeout.ms"] = "99999999"
    admin = client(runs.bootstrap, str(operator.folder / "admin.properties"))
    operations = [AclOperation.WRITE, AclOperation.DESCRIBE]
    for granted in allow(
        admin, "User:app", "", operations, transactions=f"{walstream.slot}-"
    ):
        granted.result(30)
    report = wait_for(operator, walstream, "transactions")
    assert "transaction.max.timeout.ms" in found(report, "transactions")["why"]


def wait_for(operator: Operator, walstream: Walstream, code: str) -> dict[str, Any]:
    """Check until it is found: brokers hear of a right a moment later."""
    reports: list[dict[str, Any]] = []

    def look() -> bool:
        reports.append(operator.check(walstream))
        return code in codes(reports[-1])

    wait_until(look, 20, f"{code} is found")
    return reports[-1]


def test_an_audit_takes_a_topic_that_it_may_not_see_for_none_that_is_gone(
    runs: Runs, database: Database, operator: Operator
) -> None:
    """Brokers omit such a topic where all are listed."""
    topic = f"{runs.prefix}public.t"
    admin = client(runs.bootstrap, str(operator.folder / "admin.properties"))
    admin.create_topics([NewTopic(topic, 1)])[topic].result(30)
    every = [AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE_CONFIGS]
    for granted in allow(admin, "User:app", topic, every):
        granted.result(30)
    walstream = logged_in(runs, database)
    walstream.configuration.write_text(toml(walstream.document()))
    wait_until(lambda: operator.check(walstream)["ok"], 20, "nothing is lacking")
    walstream.start().streaming()
    database.execute("INSERT INTO t VALUES (1)")
    assert walstream.terminate() == 0
    found = as_json(walstream.configuration, "audit", "positions", "audit")
    assert found["verdict"] == "agree", found

    every_acl = AclBindingFilter(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        "User:app",
        "*",
        AclOperation.ANY,
        AclPermissionType.ANY,
    )
    for removed in admin.delete_acls([every_acl]).values():
        removed.result(30)
    audits: list[dict[str, Any]] = []

    def refused() -> bool:
        audits.append(as_json(walstream.configuration, "audit", "positions", "audit"))
        return bool(audits[-1]["verdict"] != "agree")

    wait_until(refused, 20, "the brokers have heard of it")
    (source,) = audits[-1]["sources"]
    assert source["verdict"] == "unknown", source
    (problem,) = source["problems"]
    assert "AUTHORIZATION" in json.dumps(problem)
