"""Rules for a sink's keys that these formats decide themselves, or alone know."""

from collections.abc import Iterator

from walstream.config.debezium import FORMATS, Debezium
from walstream.config.problem import Problem
from walstream.config.sink import KafkaSinkConfig, RoutedSink


def check_sink(name: str, sink: RoutedSink) -> Iterator[Problem]:
    """Look at what does not go with these formats, or only with them."""
    path = ("sinks", name)
    if sink.format not in FORMATS:
        if sink.debezium != Debezium():
            yield Problem(
                (*path, "debezium"),
                f'has no effect on format "{sink.format}", only on "debezium" and '
                '"debezium_row": leave it out',
            )
        return
    if not isinstance(sink, KafkaSinkConfig):
        yield Problem(
            (*path, "format"),
            f'"{sink.format}" is written by sinks of kind "kafka" alone',
        )
    if sink.strict:
        yield Problem(
            (*path, "strict"),
            f'has no effect on format "{sink.format}": leave it out',
        )
    if sink.key != "json":
        yield Problem(
            (*path, "key"),
            f'has no effect on format "{sink.format}", whose keys have a form of their '
            "own: leave it out",
        )
    if not sink.split_key_updates:
        yield Problem(
            (*path, "split_key_updates"),
            f'is false, and a record of format "{sink.format}" has one key: leave it '
            "out",
        )
    own = sink.debezium
    if sink.format == "debezium" and (own.deletes, own.add_fields) != ("tombstone", []):
        yield Problem(
            (*path, "debezium"),
            'has deletes or add_fields, which have an effect on "debezium_row" alone: '
            "leave them out",
        )
