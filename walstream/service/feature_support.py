"""Features that a configuration may name but this version does not support.

The configuration's model knows more than this version does, so that files can be
written ahead. `run` refuses it before anything is created, and `check` names all of it.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from walstream import plugins
from walstream.config import (
    Config,
    KafkaSinkConfig,
    KafkaSource,
    PackageSink,
    PackageSource,
    PostgresSource,
    Source,
    SqlSource,
)
from walstream.config import risk as config_risk
from walstream.errors import ConfigError
from walstream.formats import encoder_of
from walstream.records.handlers import handler_of


class Risk(NamedTuple):
    """Accepted risks, and unsupported requests."""

    key: str  # with its path
    what: str


def refuse_unsupported(config: Config) -> None:
    """Raise the first of `unsupported`."""
    for error in unsupported(config):
        raise error


def unsupported(config: Config) -> Iterator[ConfigError]:
    """Name what this version does not do yet."""
    if not config.sources:
        yield ConfigError("no source is configured", hint="add [sources.NAME]")
    for name, source in config.sources.items():
        yield from _of_source(config, name, source)
    used = {sink for source in config.sources.values() for sink in source.sinks}
    for name in sorted(used):
        sink = config.sinks[name]
        if isinstance(sink, PackageSink):
            yield from _of_package(partial(plugins.load, plugins.SINKS, sink.kind))
        elif sink.format != "row":
            yield from _of_package(partial(encoder_of, sink.format))
        for handler in sink.handlers:
            yield from _of_package(partial(handler_of, handler.kind))


def _of_package(load: Callable[[], object]) -> Iterator[ConfigError]:
    """Name what an installed package adds and cannot be loaded."""
    try:
        load()
    except ConfigError as error:
        yield error


def _of_source(config: Config, name: str, source: Source) -> Iterator[ConfigError]:
    if isinstance(source, SqlSource | KafkaSource):
        what = "rows" if isinstance(source, SqlSource) else "records"
        for sink in source.sinks:
            if not isinstance(config.sinks[sink], KafkaSinkConfig):
                yield ConfigError(
                    f"sinks.{sink}.kind: {what} of a {source.kind} source go only to"
                    f" Kafka, and sources.{name} feeds it",
                    hint='write kind = "kafka", or give the source another sink',
                )
    if isinstance(source, PackageSource):
        yield from _of_package(partial(plugins.load, plugins.SOURCES, source.kind))
    if not isinstance(source, PostgresSource):
        return
    if source.encoding.upper() not in {"", "UTF8", "UTF-8"}:
        yield ConfigError(
            f"sources.{name}.encoding: {source.encoding!r} is not supported",
            hint='a SQL_ASCII database can be read only as "UTF8"',
        )


def risks(config: Config) -> Iterator[Risk]:
    """Name what is repeated at each start."""
    yield from (Risk(*remark) for remark in config.remarks)
    if config.spark.insecure:
        yield Risk("spark.insecure", config_risk.OPEN_CLUSTER)
    for section, parts in (("sources", config.sources), ("sinks", config.sinks)):
        for name, part in parts.items():
            for key, what in config_risk.risks(part).items():
                yield Risk(f"{section}.{name}.{key}", what)
