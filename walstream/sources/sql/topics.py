"""Topics of a polled table's rows."""

from collections.abc import Mapping

from walstream.errors import ConfigError
from walstream.sources.routers import Routers


def topics_of(routers: Routers, source: str, table: str) -> Mapping[str, str]:
    """Name the table's topic in each sink that has one; ConfigError where none has."""
    named = {
        sink: topic
        for sink in routers.configs
        if (topic := routers[sink].topic(*place(source, table))) is not None
    }
    if not named:
        raise ConfigError(
            f"sources.{source}.tables.{table}: no sink has a topic for it",
            hint="set topic or fallback_topic of a sink, or map the table in its"
            " topics",
        )
    return named


def place(source: str, table: str) -> tuple[str, str]:
    """Part a configured name; without a schema the source's name stands for it."""
    schema, _, name = table.rpartition(".")
    return schema or source, name
