"""A chunk's task as it goes to Spark's workers: what it carries, and what not."""

import pickle
from pathlib import Path

from sqlalchemy import BigInteger

from walstream.config import load
from walstream.kafka.topic import Topic
from walstream.sources.postgres.backfill.task_factory import TaskSnapshot, chunk_task
from walstream.sources.sql.database.shape import SqlColumn, SqlTableShape
from walstream.sources.sql.task_factory import PollOrder

CONFIGURATION = """
[http]
token = "cAnArY-http-token"
[spark.conf]
"spark.hadoop.fs.s3a.secret.key" = "cAnArY-spark"
[sources.app]
kind = "postgres"
dsn = "postgresql://app:cAnArY%2Ddsn@localhost/app?sslpassword=cAnArY-sslpassword"
slot = "app"
sinks = ["one", "two"]
[sources.other]
kind = "postgres"
dsn = "host=localhost password=${env:OTHER} dbname=other"
slot = "other"
sinks = ["two"]
[sources.legacy]
kind = "sql"
url = "mysql+pymysql://app:cAnArY-url@localhost/legacy"
sinks = ["rows"]
tables.t = { primary_key = "id" }
[sinks.one]
kind = "kafka"
[sinks.one.producer]
"bootstrap.servers" = "localhost:9092"
"sasl.password" = "${env:ONE}"
[sinks.two]
kind = "kafka"
topic = "{source}.{table}"
[sinks.two.producer]
"bootstrap.servers" = "localhost:9092"
"ssl.key.password" = "cAnArY-two"
[sinks.rows]
kind = "kafka"
format = "row"
[sinks.rows.producer]
"bootstrap.servers" = "localhost:9092"
"sasl.password" = "cAnArY-rows"
"""
TOPICS = {"t": Topic("t", "id", 1, 1_000_000)}


def canaries(task: object) -> set[str]:
    """Find the secrets in a task, however often it holds them."""
    found = pickle.dumps(task).decode("latin-1").replace("%2D", "-").split("cAnArY-")
    names = ("http", "spark", "dsn", "sslpassword", "other", "url", "one", "two")
    return {
        name for text in found[1:] for name in (*names, "rows") if text.startswith(name)
    }


def test_a_task_carries_the_secrets_of_its_own_source_and_sinks_alone(
    tmp_path: Path,
) -> None:
    file = tmp_path / "walstream.toml"
    file.write_text(CONFIGURATION, "utf-8")
    config = load(file, {"OTHER": "cAnArY-other", "ONE": "cAnArY-one"})
    assert len(config.secrets.values) > 8
    snapshot = TaskSnapshot("1-1", 1, b"7/app/1")

    task = chunk_task(config, "app", snapshot, {"one": TOPICS, "two": TOPICS})
    assert canaries(task) == {"dsn", "sslpassword", "one", "two"}
    # decoded, too: libpq says a password as it is
    assert "cAnArY-dsn" in task.secrets
    task = chunk_task(config, "app", snapshot, {"one": TOPICS})
    assert canaries(task) == {"dsn", "sslpassword", "one"}
    task = chunk_task(config, "other", snapshot, {"two": TOPICS})
    assert canaries(task) == {"other", "two"}

    key = SqlColumn("id", "BIGINT", BigInteger())
    shape = SqlTableShape("t", "", "t", key, (key,))
    order = PollOrder("legacy", "t", shape, {"rows": TOPICS["t"]}, [], "/nowhere", 1)
    assert canaries(order.task(config, None)) == {"url", "rows"}
