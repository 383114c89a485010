"""Findings of `check` about where the records of tables would go."""

from collections.abc import Iterable, Iterator

from walstream.errors import ConfigError
from walstream.finding import Finding
from walstream.postgres.catalog import TableFacts
from walstream.records.handlers.chain import is_outbox
from walstream.records.router import Unmapped
from walstream.sources.handlers import handler_specs
from walstream.sources.routers import NotFull, Routers


def partition_keys(routers: Routers, tables: Iterable[TableFacts]) -> Iterator[Finding]:
    """Yield findings about partition keys that some record could not have."""
    for table, problem in routers.problems(tables):
        subject = f"table {table.full_name}"
        if isinstance(problem, NotFull):
            yield Finding.of(problem, "strict", subject)
            continue
        yield Finding.of(
            problem,
            "partition-key",
            subject,
            "a record without its complete key would go to another partition than the "
            "other records of its row",
        )


def topics_of(
    routers: Routers, sink: str, tables: Iterable[TableFacts]
) -> tuple[set[str], list[Finding]]:
    """Name the topics of the tables, and the tables that can have none."""
    topics, findings = routers.beside(sink), []
    specs = handler_specs(routers.configs[sink])
    for table in tables:
        if is_outbox(specs, table.full_name):
            continue
        try:
            topic = routers[sink].topic(table.schema, table.name)
        except ConfigError as error:
            subject = f"table {table.full_name}"
            code = "strict" if isinstance(error, Unmapped) else "topic-name"
            findings.append(Finding.of(error, code, subject))
        else:
            topics |= {topic} if topic is not None else set()
    return topics, findings
