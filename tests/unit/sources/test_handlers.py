"""What a source's tables say to its handlers, before anything is sent."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.table_facts import table_facts
from walstream.config import Config, LogSink, load
from walstream.postgres.catalog import TableFacts
from walstream.sources.handlers import (
    handler_problems,
    handler_specs,
    idle_patterns,
    is_backfilled,
    max_topics,
    outbox_sinks,
)
from walstream.sources.routers import Routers

TEXT = """
[sources.app]
kind = "postgres"
dsn = "host=/run/postgresql"
sinks = ["log"]
[sinks.log]
kind = "log"
[sinks.log.topics."public.t"]
name = "t"
partition_key = ["tenant"]
[[sinks.log.handlers]]
"""


def configured(folder: Path, handler: str) -> Config:
    path = folder / "walstream.toml"
    path.write_text(TEXT + handler, "utf-8")
    return load(path, {})


def problems(folder: Path, handler: str, *tables: TableFacts) -> list[str]:
    routers = Routers(configured(folder, handler), "app")
    found = list(handler_problems(routers, tables))
    assert all(sink == "log" for sink, _ in found)
    return [str(error) for _, error in found]


def table(name: str = "t", identity: str = "d", **more: Any) -> TableFacts:
    key: Sequence[str] = more.pop("key", ("id",))
    return table_facts(
        f"public.{name}",
        replica_identity=identity,
        primary_key=tuple(key),
        identity=tuple(more.pop("carried", key)),
        columns=("id", "tenant", "note"),
        not_null=frozenset(("id",)),
    )


DROP = 'kind = "drop_columns"\ncolumns = ["{}"]'
FILTER = 'kind = "filter"\ncolumn = "tenant"\nequals = "a"'


@pytest.mark.parametrize(
    ("handler", "wanted"),
    [
        (DROP.format("note"), ""),
        (DROP.format("id"), "part of its key"),
        (DROP.format("tenant"), "which is its partition_key"),
        (DROP.format("typo"), "none of its tables has: typo"),
        ('kind = "rename_columns"\ncolumns = { tenant = "who" }', ""),
        ('kind = "mask"\ncolumns = ["id"]\ntext = "x"', "part of its key"),
        ('kind = "mask"\ncolumns = ["id"]\nsecret = "0123456789abcdef"', ""),
        (
            'kind = "mask"\ncolumns = ["tenant"]\ntext = "x"',
            "part of its partition_key",
        ),
        ('kind = "filter"\ncolumn = "typo"\nequals = "a"', "has no column 'typo'"),
    ],
)
def test_what_a_handler_cannot_do_is_named_at_start(
    tmp_path: Path, handler: str, wanted: str
) -> None:
    found = problems(tmp_path, handler, table("t"), table("u"))
    assert len(found) == bool(wanted)
    assert all(error.startswith("sinks.log.handlers: ") for error in found)
    assert wanted in "".join(found)


@pytest.mark.parametrize(
    ("facts", "silent"),
    [
        (table(), True),
        (table(identity="f"), False),
        (table(identity="i", carried=("id", "tenant")), False),
        (table(identity="n", key=()), False),  # inserts alone
    ],
)
def test_a_filter_needs_old_rows_that_tell(
    tmp_path: Path, facts: TableFacts, *, silent: bool
) -> None:
    found = problems(tmp_path, FILTER, facts)
    assert len(found) == silent
    assert all("would be unknown" in error for error in found)
    config = configured(tmp_path, FILTER)
    errors = [error for _, error in handler_problems(Routers(config, "app"), [facts])]
    assert all("REPLICA IDENTITY FULL;" in error.repair.sql for error in errors)


def test_a_filter_of_inserts_needs_no_old_row(tmp_path: Path) -> None:
    assert problems(tmp_path, FILTER, table())
    assert not problems(tmp_path, FILTER + '\noperations = ["insert"]', table())


def test_a_filter_knows_a_renamed_column(tmp_path: Path) -> None:
    rename = 'kind = "rename_columns"\ncolumns = {{ {} = "tenant", tenant = "x" }}'
    both = f"{rename}\n[[sinks.log.handlers]]\n{FILTER}"
    assert problems(tmp_path, both.format("id"), table()) == []
    assert len(problems(tmp_path, both.format("note"), table())) == 1


def test_of_no_table_nothing_is_said(tmp_path: Path) -> None:
    assert problems(tmp_path, DROP.format("typo")) == []


def test_a_pattern_without_a_table_is_named_with_what_may_be_meant(
    tmp_path: Path,
) -> None:
    handler = 'kind = "passthrough"\ntables = ["public.t*", "public.ordres"]'
    routers = Routers(configured(tmp_path, handler), "app")
    found = idle_patterns(routers, [table(), table("orders")])
    said = "matches no table; did you mean 'public.orders'?"
    assert list(found) == [("log", "public.ordres", said)]
    assert not list(idle_patterns(routers, []))


def test_a_topic_of_a_table_that_is_written_otherwise_is_named(tmp_path: Path) -> None:
    routers = Routers(configured(tmp_path, 'kind = "passthrough"'), "app")
    said = "matches no table; did you mean 'public.T'?"
    assert list(idle_patterns(routers, [table("T")])) == [("log", "public.t", said)]
    assert not list(idle_patterns(routers, [table("T"), table()]))
    assert not list(idle_patterns(routers, [table("other")]))


def test_what_is_made_of_it_is_what_was_written(tmp_path: Path) -> None:
    (spec,) = handler_specs(configured(tmp_path, DROP.format("note")).sinks["log"])
    assert (spec.kind, spec.tables) == ("drop_columns", ("*",))
    assert spec.settings == {"columns": ["note"]}


OUTBOX = """
kind = "outbox"
tables = ["public.o*"]
id = "id"
key = "tenant"
route = "note"
payload = "note"
max_topics = 7
"""


def test_an_outbox_has_no_rows_to_backfill(tmp_path: Path) -> None:
    config = configured(tmp_path, OUTBOX)
    assert outbox_sinks(config, "app", "public.orders") == ["log"]
    assert not is_backfilled(config, "app", "public.orders")
    assert is_backfilled(config, "app", "public.t")
    assert max_topics(config.sinks["log"]) == 7
    other = config.model_copy(
        update={"sinks": {**config.sinks, "more": LogSink(kind="log")}}
    )
    other.sources["app"].sinks.append("more")  # which takes its rows
    assert is_backfilled(other, "app", "public.orders")
    assert max_topics(other.sinks["more"]) == 1000


def test_columns_of_an_outbox_are_looked_for_at_start(tmp_path: Path) -> None:
    assert not problems(tmp_path, OUTBOX, table("orders"))
    wrong = OUTBOX.replace('payload = "note"', 'payload = "body"')
    (said,) = problems(tmp_path, wrong, table("orders"))
    assert "outbox: table 'public.orders' has no column body" in said
