"""What a configuration may ask for that this version does not do, or not safely.

The configuration's model knows more than this version does, so that files can be
written ahead. `run` refuses it before anything is created, and `check` names all of it.
"""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from walstream.config import Config, KafkaSink, PostgresSource, Source
from walstream.config import risk as config_risk
from walstream.errors import ConfigError
from walstream.formats import encoder_of

_BUILT: Final[dict[str, tuple[Any, ...]]] = {
    "on_too_large": ("stop",),
    "tombstones": (False,),
}
_WITHOUT_EFFECT: Final = {"detach_after"}


class Risk(NamedTuple):
    """What was given up, or is asked in vain."""

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
        yield from _of_source(name, source)
    used = {sink for source in config.sources.values() for sink in source.sinks}
    for name in sorted(used):
        sink = config.sinks[name]
        if not isinstance(sink, KafkaSink):
            yield ConfigError(
                f"sinks.{name}.kind: {sink.kind!r} is not in this version",
                hint='only kind = "kafka" is delivered to yet',
            )
            continue
        if sink.format != "row":
            yield from _of_format(sink.format)
        for key, built in _BUILT.items():
            if getattr(sink, key) not in built:
                yield ConfigError(
                    f"sinks.{name}.{key}: {getattr(sink, key)!r} is not in this"
                    " version",
                    hint=f"write {key} = {' or '.join(map(repr, built))}",
                )


def _of_format(name: str) -> Iterator[ConfigError]:
    try:
        encoder_of(name)
    except ConfigError as error:
        yield error


def _of_source(name: str, source: Source) -> Iterator[ConfigError]:
    if not isinstance(source, PostgresSource):
        return
    if source.encoding.upper() not in {"", "UTF8", "UTF-8"}:
        yield ConfigError(
            f"sources.{name}.encoding: {source.encoding!r} is not in this version",
            hint='a SQL_ASCII database may be read as "UTF8" alone',
        )
    if source.heartbeat:
        yield ConfigError(
            f"sources.{name}.heartbeat is not in this version",
            hint='leave it "": keepalives move an idle slot',
        )


def risks(config: Config) -> Iterator[Risk]:
    """Name what is repeated at each start."""
    yield from (Risk(*remark) for remark in config.remarks)
    for section, parts in (("sources", config.sources), ("sinks", config.sinks)):
        for name, part in parts.items():
            for key, what in config_risk.risks(part).items():
                yield Risk(f"{section}.{name}.{key}", what)
            for key in sorted(_WITHOUT_EFFECT & part.model_fields_set):
                yield Risk(
                    f"{section}.{name}.{key}",
                    "this key has no effect in this version",
                )
