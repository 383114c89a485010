"""The composition root: configuration -> a supervisor of one worker for each source."""

from dataclasses import asdict
from typing import Any, Final

import structlog

from walstream.config import Config, KafkaSink, PostgresSource
from walstream.config.risk import risks
from walstream.errors import ConfigError
from walstream.supervisor import Supervisor

_WITHOUT_EFFECT: Final = {"detach_after"}
_log = structlog.get_logger()


def check_supported(config: Config) -> None:
    """Refuse what this version does not do yet, before anything is created."""
    for name, source in config.sources.items():
        if not isinstance(source, PostgresSource):
            raise ConfigError(
                f"sources.{name}.kind: {source.kind!r} is not in this version",
                hint='only kind = "postgres" streams yet: remove the source',
            )
        if source.backfill != "never":
            raise ConfigError(
                f"sources.{name}.backfill: {source.backfill!r} is not in this version",
                hint=f'set backfill = "never" in [sources.{name}]: the rows that are'
                " there already do not come to Kafka",
            )
        if source.encoding.upper() not in {"", "UTF8", "UTF-8"}:
            raise ConfigError(
                f"sources.{name}.encoding: {source.encoding!r} is not in this version",
                hint='a SQL_ASCII database may be read as "UTF8" alone',
            )
        if source.heartbeat:
            raise ConfigError(
                f"sources.{name}.heartbeat is not in this version",
                hint='leave it "": keepalives move an idle slot',
            )
    used = {sink for source in config.sources.values() for sink in source.sinks}
    for name in sorted(used):
        sink = config.sinks[name]
        if not isinstance(sink, KafkaSink):
            raise ConfigError(
                f"sinks.{name}.kind: {sink.kind!r} is not in this version"
            )
        plain = {
            "format": ("op",),
            "key": ("json", "concat"),
            "on_too_large": ("stop",),
            "tombstones": (False,),
            "strict": (False,),
        }
        for key, allowed in plain.items():
            if getattr(sink, key) not in allowed:
                raise ConfigError(
                    f"sinks.{name}.{key}: {getattr(sink, key)!r} is not in this"
                    " version",
                    hint=f"write {key} = {' or '.join(map(repr, allowed))}",
                )


def tell_risks(config: Config) -> None:
    """Repeat at each start what the configuration gave up, and what it asks in vain."""
    for section, parts in (("sources", config.sources), ("sinks", config.sinks)):
        for name, part in parts.items():
            for key, what in risks(part).items():
                _log.warning(what, key=f"{section}.{name}.{key}")
            for key in _WITHOUT_EFFECT & part.model_fields_set:
                _log.warning(
                    "this key has no effect in this version",
                    key=f"{section}.{name}.{key}",
                )


def run(config: Config, options: Any) -> int:
    """Run all sources until they end; give the process's exit code."""
    check_supported(config)
    tell_risks(config)
    if not config.sources:
        raise ConfigError("no source is configured", hint="add [sources.NAME]")
    return Supervisor(config, asdict(options)).run()
