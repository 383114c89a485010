"""Ids for tasks: of the shapes that handlers make of tables."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from walstream.formats.encodings.subject import SchemaId
from walstream.op import Table
from walstream.records.handlers.chain import Spec
from walstream.sources.registered_sinks import RegisteredSinks

TABLE = Table("public", "t", ("id", "v"), (0,), (23, 25), modifiers=(-1, -1))


class Sink:
    """A sink that knows ids at the second question."""

    def __init__(self, name: str, *, has_registry: bool) -> None:
        self.name = name
        self.has_registry = has_registry
        self.asked: list[tuple[str, ...]] = []

    def have_ids(self, table: Table) -> bool:
        self.asked.append(table.columns)
        return len(self.asked) > 1

    def ids_of(self, table: Table) -> dict[str, SchemaId]:
        return {"-".join(table.columns): SchemaId(7)}


def test_ids_are_of_the_handled_shapes_of_sinks_with_a_registry() -> None:
    sinks = RegisteredSinks()
    first: Any = Sink("one", has_registry=True)
    other: Any = Sink("two", has_registry=False)
    settings = {"columns": {"v": "w"}}
    outbox = Spec("outbox", ("*.events",), {"topic": "t"})
    sinks.add(first, [Spec("rename_columns", ("*.t",), settings), outbox])
    sinks.add(other, [])
    waits = []

    def wait(known: Callable[[], bool]) -> None:
        while not known():
            waits.append(1)

    events = replace(TABLE, name="events")
    assert sinks.wait(wait, [TABLE, events]) == {"one": {"id-w": SchemaId(7)}}
    assert waits == [1]
    assert first.asked == [("id", "w")] * 2  # and nothing of an outbox
    assert other.asked == []
