"""Findings of `check` about polled tables: the errors that `run` would end with."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from walstream.admin.check import row_schemas
from walstream.config import Config, SqlSource
from walstream.errors import (
    ConfigError,
    PermissionLacking,
    Repair,
    Transient,
    WalstreamError,
)
from walstream.finding import Finding, note
from walstream.sources.routers import Routers
from walstream.sources.sql.inspection import DatabaseInspection
from walstream.sources.sql.topics import topics_of
from walstream.spark import prerequisites
from walstream.status.sql import StoredPolls, beyond_table

_GRANT: Final = "GRANT "


def inspect(
    config: Config, name: str, source: SqlSource, kept: StoredPolls
) -> Iterator[Finding]:
    """Look at this machine and at the database, in the order in which `run` does."""
    for code, error in prerequisites.on_this_machine(config):
        yield Finding.of(error, code, "spark", "rows are read by Spark")
    from walstream.sources.sql.inspector import visit  # noqa: PLC0415 - SQLAlchemy

    sight = visit(source)
    if sight.problem is not None:
        yield _of_database(sight.problem)
    for title, table in sight.tables.items():
        if table.problem is not None:
            yield _of_table(table.problem, title)
        known = kept.tables.get(title)
        position = known.key if known else None
        if found := beyond_table(title, position, table.newest):
            yield found
    yield from row_schemas.inspect(Routers(config, name), name, source, sight)
    yield from _without_mark(source, sight)


def topics(
    routers: Routers, name: str, source: SqlSource
) -> tuple[Mapping[str, set[str]], list[Finding]]:
    """Name each sink's topics, and the tables that can have none."""
    found: dict[str, set[str]] = {sink: set() for sink in routers.configs}
    findings = []
    for table in source.tables:
        try:
            for sink, topic in topics_of(routers, name, table).items():
                found[sink].add(topic)
        except ConfigError as error:
            findings.append(Finding.of(error, "topic-name", f"table {table}"))
    return found, findings


def _of_database(error: WalstreamError) -> Finding:
    if isinstance(error, Transient):
        why = "run would wait for it; new rows wait in their tables meanwhile"
        return Finding.of(error, "database-unreachable", "database", why)
    denied = isinstance(error, PermissionLacking)
    return Finding.of(error, "database-login" if denied else "database", "database")


def _of_table(error: WalstreamError, name: str) -> Finding:
    denied = isinstance(error, PermissionLacking)
    subject = f"table {name}"
    found = Finding.of(error, "table-right" if denied else "table", subject)
    # said once is enough
    return replace(found, what=found.what.removeprefix(subject).lstrip(": "))


def _without_mark(source: SqlSource, sight: DatabaseInspection) -> Iterator[Finding]:
    """Note why missing keys are given up by time alone, once for equal reasons."""
    alike: dict[str, list[str]] = {}
    for name, table in sight.tables.items():
        if table.lacks_mark and source.tables[name].gap_timeout:
            alike.setdefault(table.lacks_mark, []).append(name)
    for reason, names in alike.items():
        _, grant, rest = reason.partition(_GRANT)
        yield note(
            "low-water-mark",
            f"table{'s' * (len(names) > 1)} {', '.join(names)}",
            f"without a low-water mark: {reason}",
            "walstream stops waiting for a missing key after gap_timeout, even while "
            "a transaction that may use it still runs: keep it above the longest "
            "transaction",
            Repair(sql=grant + rest),
        )
