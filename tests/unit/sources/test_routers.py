"""A partition key that some record could not have is named with the SQL that cures."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.table_facts import table_facts
from walstream.config import Config, PackageSource, load
from walstream.formats.context import Context, SourceOrigin
from walstream.postgres.catalog import TableFacts
from walstream.records.router import Unmapped
from walstream.sources.routers import NotFull, Routers

TEXT = """
[sources.app]
kind = "postgres"
dsn = "host=/run/postgresql"
sinks = ["one", "two", "log"]
[sinks.one]
kind = "kafka"
topic = "one.{table}"
format = "tungsten"
embed = ["table"]
[sinks.one.topics."public.t"]
name = "mapped"
partition_key = ["org"]
[sinks.one.producer]
"bootstrap.servers" = "localhost:9092"
[sinks.two]
kind = "kafka"
topic = "two.{table}"
[sinks.two.topics.t]
name = "other"
partition_key = ["id"]
[sinks.two.producer]
"bootstrap.servers" = "localhost:9092"
[sinks.log]
kind = "log"
"""
TABLE = table_facts(
    replica_identity="f", columns=("id", "org"), not_null=frozenset({"id", "org"})
)


@pytest.fixture
def routers(tmp_path: Path) -> Routers:
    path = tmp_path / "walstream.toml"
    path.write_text(TEXT)
    config: Config = load(path, {})
    return Routers(config, "app")


def sql(routers: Routers, table: TableFacts) -> list[str]:
    return [problem.repair.sql for _, problem in routers.problems([table])]


def test_each_kafka_sink_has_a_router_and_keys_are_joined(routers: Routers) -> None:
    assert list(routers.configs) == ["one", "two"]
    assert routers["one"].topic("public", "t") == "mapped"
    assert routers["two"].topic("public", "x") == "two.x"
    assert routers.partition_key("public", "t") == ("id", "org")
    assert routers.partition_key("public", "x") == ()


def test_formats_are_told_whose_ops_they_are(tmp_path: Path) -> None:
    path = tmp_path / "walstream.toml"
    path.write_text(
        TEXT.replace("host=/run/", "host=h.example sslmode=verify-full options=/")
    )
    routers = Routers(load(path, {}), "app")
    origin = SourceOrigin("h.example", "a/b", 7, "walstream")
    assert routers.context("one", "7/a/b") == Context(origin, frozenset({"table"}))
    path.write_text(TEXT.replace("host=/run/postgresql", "dbname=x"))
    routers = Routers(load(path, {}), "app")
    assert routers.context("two", "7/x").origin.host == "unknown"


def test_a_whole_old_row_carries_every_key(routers: Routers) -> None:
    assert sql(routers, TABLE) == []
    assert sql(routers, replace(TABLE, name="x", not_null=frozenset())) == []


def test_all_problems_are_named_not_the_first(routers: Routers) -> None:
    table = replace(
        TABLE, replica_identity="d", identity=("id",), not_null=frozenset({"id"})
    )
    assert sql(routers, table) == [
        'ALTER TABLE "public"."t" ALTER "org" SET NOT NULL;',
        'ALTER TABLE "public"."t" REPLICA IDENTITY FULL;',
    ]


def test_a_column_that_is_not_there_has_no_sql(routers: Routers) -> None:
    ((_, problem),) = routers.problems([replace(TABLE, columns=("id",))])
    assert "'org'" in str(problem)
    assert "its columns are id" in str(problem)
    assert not problem.repair


def test_a_partitioned_table_is_altered_with_its_leaves(routers: Routers) -> None:
    table = replace(TABLE, kind="p", leaves_full=False)
    first, second = sql(routers, table)
    assert first == second
    assert 'pg_partition_tree(\'"public"."t"\')' in first


def test_under_strict_every_table_is_full(tmp_path: Path) -> None:
    path = tmp_path / "walstream.toml"
    strict = 'strict = true\non_truncate = "stop"'
    text = TEXT.replace('topic = "two.{table}"', strict)
    text = text.replace("dsn =", 'backfill = "never"\ndsn =')
    path.write_text(text)
    routers = Routers(load(path, {}), "app")
    assert not list(routers.problems([TABLE]))
    keyed = replace(
        TABLE, replica_identity="d", identity=("id", "org"), primary_key=("id", "org")
    )
    ((_, problem),) = routers.problems([keyed])
    assert isinstance(problem, NotFull)
    assert "sinks.two.strict" in str(problem)
    full = 'ALTER TABLE "public"."t" REPLICA IDENTITY FULL;'
    assert problem.repair.sql == full
    root = replace(TABLE, kind="p", leaves_full=False, name="x")
    ((_, problem),) = routers.problems([root])
    assert "pg_partition_tree" in problem.repair.sql
    with pytest.raises(Unmapped):
        routers["two"].topic("public", "x")
    assert routers["one"].topic("public", "x") == "one.x"


def test_names_are_quoted(tmp_path: Path) -> None:
    path = tmp_path / "walstream.toml"
    path.write_text(TEXT.replace('"public.t"', '"p\'s.a\\"b"'))
    routers = Routers(load(path, {}), "app")
    table = replace(TABLE, schema="p's", name='a"b', not_null=frozenset())
    null, *_ = sql(routers, table)
    assert null == 'ALTER TABLE "p\'s"."a""b" ALTER "org" SET NOT NULL;'
    *_, tree = sql(routers, replace(table, kind="p", leaves_full=False))
    assert 'pg_partition_tree(\'"p\'\'s"."a""b"\')' in tree


def test_the_records_of_a_package_source_have_the_sinks_options(tmp_path: Path) -> None:
    path = tmp_path / "walstream.toml"
    text = TEXT.replace('format = "tungsten"\nembed = ["table"]', 'format = "debezium"')
    path.write_text(
        text.replace(
            "[sinks.two]", "[sinks.one.debezium]\ndecimal = 'string'\n[sinks.two]", 1
        )
    )
    config = load(path, {})
    mine = PackageSource(kind="mine", sinks=["one", "two"])
    routers = Routers(config.model_copy(update={"sources": {"mine": mine}}), "mine")
    found = routers.context("one", "0/mine").debezium
    assert found is not None
    assert (found.name, found.decimal) == ("mine", "string")
    assert routers.context("two", "0/mine").debezium is None
