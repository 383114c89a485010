"""Rules for the sinks of a kafka source: they send records as they came.

Such records are written already, key and all: a sink that is told to write them in some
way of its own would be told in vain, and is refused.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from walstream.config.problem import Problem
from walstream.config.sink import KafkaSinkConfig, RoutedSink, Sink
from walstream.config.source import KafkaSource, Source

FORMATS: Final = ("op", "event")
_IN_VAIN: Final = (
    "key",
    "partitioner",
    "strict",
    "on_truncate",
    "split_key_updates",
    "on_too_large",
    "tombstones",
    "topic_partitions",
    "on_failure",
    "txinfo",
    "txinfo_max_rows",
    "resolved",
    "batch_rows",
    "batch_interval",
)
STOP: Final = "stop"
SKIP: Final = "skip"
NO_TOPIC: Final = {STOP, SKIP}
"""Policies of `on_poison`; every other one is the name of a topic."""


def check_chains(
    sources: Mapping[str, Source], sinks: Mapping[str, Sink]
) -> Iterator[Problem]:
    """Look at the sinks of each kafka source, and at where its poison goes."""
    for name, source in sources.items():
        if not isinstance(source, KafkaSource):
            continue
        yield from _check_poison(name, source, sinks)
        formats = {
            found.format
            for sink in source.sinks
            if isinstance(found := sinks.get(sink), RoutedSink)
        }
        if len(formats) > 1:
            yield Problem(
                ("sources", name, "sinks"),
                f"have the formats {' and '.join(sorted(formats))}: a kafka source "
                "reads one format, and the sink's format names it",
            )
        for sink in source.sinks:
            if sink in sinks:
                yield from _check_sink(name, sink, sinks[sink])


def _check_poison(
    name: str, source: KafkaSource, sinks: Mapping[str, Sink]
) -> Iterator[Problem]:
    if source.on_poison in source.topics:
        yield Problem(
            ("sources", name, "on_poison"),
            f'"{source.on_poison}" is a topic that the source itself reads: name '
            "another",
        )
    # others may write to another cluster; of a template, the stream itself sees it
    sink = sinks.get(source.sinks[0])
    if not isinstance(sink, KafkaSinkConfig) or source.on_poison in NO_TOPIC:
        return
    if source.on_poison in {sink.topic, *(one.name for one in sink.topics.values())}:
        yield Problem(
            ("sources", name, "on_poison"),
            f'"{source.on_poison}" is a topic to which sinks.{source.sinks[0]} sends '
            "ops: name another",
        )


def _check_sink(source: str, name: str, sink: Sink) -> Iterator[Problem]:
    if not isinstance(sink, KafkaSinkConfig):
        yield Problem(
            ("sources", source, "sinks"),
            f'sinks.{name} is of kind "{sink.kind}": a kafka source feeds kafka sinks',
        )
        return
    path = ("sinks", name)
    if sink.format not in FORMATS:
        yield Problem(
            (*path, "format"),
            f'"{sink.format}" cannot be made from the records of sources.{source}, '
            'which are relayed as they are: write their format, "op" or "event"',
        )
    if sink.encoding != "json":
        yield Problem(
            (*path, "encoding"),
            f'is "{sink.encoding}", and the records of sources.{source} are relayed as '
            "they are, in JSON: leave it out, and read topics in JSON alone",
        )
    why = (
        f"has no effect on the records of sources.{source}, which are relayed as they "
        "are: leave it out, or give the source a sink of its own"
    )
    for key in _IN_VAIN:
        if getattr(sink, key) != KafkaSinkConfig.model_fields[key].default:
            yield Problem((*path, key), why)
    for table, mapped in sink.topics.items():
        if mapped.partition_key is not None:
            yield Problem((*path, "topics", table, "partition_key"), why)
        if sink.format == "event" and "." in table:
            yield Problem(
                (*path, "topics", table),
                "would match nothing: records of format event name no schema; write"
                " the bare name of the table",
            )
    if sink.format == "event" and "{schema}" in sink.topic:
        yield Problem(
            (*path, "topic"),
            "has {schema}, and records of format event name none: write {table}",
        )
