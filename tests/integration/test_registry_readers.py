"""What walstream writes in Avro reaches a mirror, by a real registry's schemas."""

import pytest

from consumer import IdempotentConsumer, PostgresMirror, SchemasRefused
from consumer.errors import SchemasAway
from consumer.registry import SchemaRegistry
from tests.integration.test_registry import CHANGES, TABLE, Run, run
from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.programs.consumer_thread import Running
from tests.support.servers.apicurio import LocalRegistry
from walstream.errors import WalstreamError

pytestmark = pytest.mark.same_on_15
__all__ = ["run"]  # a fixture

_ROWS = "SELECT id, v, m::text, n FROM t ORDER BY id"


def test_a_mirror_follows(  # noqa: PLR0913, PLR0917 - fixtures
    database: Database,
    run: Run,
    kafka: KafkaServer,
    registry: LocalRegistry,
    postgres: PostgresServer,
    topic_prefix: str,
) -> None:
    with (
        temporary_database(postgres) as target,
        run(registry),
        IdempotentConsumer(
            PostgresMirror(target.dsn),
            _made(target),
            group=topic_prefix,
            topics=f"{topic_prefix}public.*",
            kafka={"bootstrap.servers": kafka.bootstrap, "fetch.wait.max.ms": 10},
            registry={"url": registry.url},
        ) as consumer,
    ):
        running = Running(consumer)
        database.execute(CHANGES)

        def same() -> bool:
            if running.error is not None:
                raise running.error
            return target.fetch(_ROWS) == database.fetch(_ROWS)

        wait_until(same, 120, "the mirror has the rows")
        database.execute("ALTER TABLE t ADD w text DEFAULT 'd'")
        target.execute("ALTER TABLE t ADD w text")
        database.execute("INSERT INTO t VALUES (9, 'nine', NULL, NULL, NULL)")
        wait_until(same, 120, "the mirror has the new column")
        assert target.fetch("SELECT w FROM t WHERE id = 9") == [(None,)]


def _made(target: Database) -> str:
    target.execute(TABLE.replace("REPLICA IDENTITY FULL", "REPLICA IDENTITY DEFAULT"))
    target.execute("TRUNCATE t")
    return target.dsn


def test_an_unknown_id_is_told_as_such(registry: LocalRegistry) -> None:
    asked = SchemaRegistry({"url": registry.url})
    with pytest.raises(SchemasAway, match="does not know schema 999999 yet"):
        asked.schema(999_999)
    asked.close()
    elsewhere = registry.url.partition("/apis")[0]
    for url in (elsewhere, f"{elsewhere}/apis/nothing"):
        other = SchemaRegistry({"url": url})
        with pytest.raises(WalstreamError) as found:
            other.schema(1)
        assert isinstance(found.value, SchemasAway | SchemasRefused), found.value
        assert "yet" not in str(found.value)
        other.close()
