"""Rules for [sinks.NAME.messages], whose keys depend on the sink's format."""

from collections.abc import Iterator
from typing import Final

from walstream.config.debezium import FORMATS
from walstream.config.messages import Messages
from walstream.config.problem import Problem

_OWN: Final = "walstream"


def check_messages(
    path: tuple[str, ...], messages: Messages, sink_format: str
) -> Iterator[Problem]:
    """Name options that go with another one, or with no other."""
    if not messages.prefixes:
        if messages != Messages():
            yield Problem(path, "has no effect without prefixes: name some")
        return
    form = messages.form_in(sink_format)
    if form == "debezium" and sink_format not in FORMATS:
        yield Problem(
            (*path, "form"),
            f'"debezium" goes with the formats debezium alone, and the sink has format '
            f'"{sink_format}": write "content"',
        )
    if form == "debezium" and messages.key:
        yield Problem(
            (*path, "key"),
            'has no effect on form "debezium", whose key is the prefix: leave it out',
        )
    for prefix in messages.prefixes:
        if prefix == _OWN or prefix.startswith(f"{_OWN}."):
            yield Problem(
                (*path, "prefixes"),
                f'"{prefix}" is of walstream\'s own messages, which are no records',
            )
