"""Rules for sinks that write in Kafka's transactions."""

from collections.abc import Iterator, Mapping
from typing import Final

from walstream.config.librdkafka import whole_number
from walstream.config.problem import Problem
from walstream.config.sink import KafkaSinkConfig, Sink
from walstream.config.source import KafkaSource, PostgresSource, Source

_TIMEOUT: Final = "transaction.timeout.ms"
_DEFAULT_MS: Final = 60_000
_INTERVALS: Final = 4  # that a transaction has to have room for
_TIMEOUTS: Final = ("message.timeout.ms", "delivery.timeout.ms")


def check_transactional(
    sources: Mapping[str, Source], sinks: Mapping[str, Sink]
) -> Iterator[Problem]:
    """Look at each such sink, and at the sources that it takes ops of."""
    for name, sink in sinks.items():
        if isinstance(sink, KafkaSinkConfig) and sink.is_transactional:
            yield from _check_sink(name, sink)
            yield from _check_sources(name, sources)


def _check_sources(name: str, sources: Mapping[str, Source]) -> Iterator[Problem]:
    for source, found in sources.items():
        streams = isinstance(found, PostgresSource | KafkaSource)
        if name in found.sinks and not streams:
            yield Problem(
                ("sinks", name, "delivery"),
                f'"transactional" is for streams and relays, and sources.{source} is'
                f" of kind {found.kind}: leave it out, or give that source a sink of"
                " its own",
            )


def _check_sink(name: str, sink: KafkaSinkConfig) -> Iterator[Problem]:
    if sink.at_most_once:
        yield Problem(
            ("sinks", name, "delivery"),
            '"transactional" promises that nothing is lost, and at_most_once that it '
            "may be: leave out one of them",
        )
    for key in _TIMEOUTS:
        if key in sink.producer:
            yield Problem(
                ("sinks", name, "producer", key),
                f"has no effect on transactional records, which have {_TIMEOUT}: leave "
                "it out",
            )
    try:
        timeout_ms = whole_number(sink.producer, _TIMEOUT, _DEFAULT_MS)
    except ValueError:
        return  # librdkafka says it
    if timeout_ms < sink.commit_interval * 1000 * _INTERVALS:
        yield Problem(
            ("sinks", name, "commit_interval"),
            f"is too long for transactions that may last {timeout_ms} ms ({_TIMEOUT}): "
            f"write a quarter of that at most",
        )
