"""The records of Debezium and of walstream compared, one by one and in order.

In each partition of each topic: keys, values, schemas, headers. A TRUNCATE has no key,
and may be in any partition: those of a topic are compared by themselves.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from tests.support.oracles.avro_records import AvroTrees
from tests.support.oracles.debezium_rules import (
    RULES,
    Found,
    TableOf,
    is_processing_time,
)
from tests.support.oracles.json_difference import Difference, Node, differences, tree
from tests.support.oracles.topic_reader import Record
from tests.support.programs.debezium import (
    BEACON,
    Beside,
    by_topic,
)
from tests.support.programs.debezium_variant import (
    MESSAGE,
    OURS,
    TRANSACTION,
    Variant,
)
from walstream.formats.debezium.names import topic as topic_of

Read = Callable[[bytes | None], Node]
"""Makes a tree of a key or a value; None of none."""


def _json_tree(data: bytes | None) -> Node:
    return None if data is None else tree(data.decode())


def explained(beside: Beside) -> tuple[set[str], list[Found]]:
    """Return the rules that explain differences, and what none explains."""
    if beside.registry is None:
        return _explained(compared(beside, _json_tree))
    with AvroTrees(beside.registry.url) as trees:
        return _explained(compared(beside, trees.tree))


def _explained(those: Iterable[Found]) -> tuple[set[str], list[Found]]:
    used: set[str] = set()
    others: list[Found] = []
    for found in those:
        if is_processing_time(found):
            continue
        names = [name for name, rule in RULES.items() if rule(found)]
        used.update(names)
        if not names:
            others.append(found)
    return used, others


def compared(beside: Beside, read: Read) -> Iterator[Found]:
    """Yield each difference of the records that both have written."""
    theirs, ours = map(by_topic, (beside.theirs.records, beside.ours.records))
    yield from _alone(beside, theirs, ours)
    assert {f"{OURS}{topic}" for topic in theirs} == ours.keys()
    for variant in beside.variants:
        for word in (MESSAGE, TRANSACTION):
            topic = f"{beside.name(variant)}.{word}"
            if topic in theirs:
                known = TableOf({}, is_partition=False)
                both = theirs[topic], ours[f"{OURS}{topic}"]
                yield from _of_topic(both, variant, known, read)
        for schema, table in beside.seen:
            topic = topic_of(beside.name(variant), schema, table)
            if topic in theirs:
                known = beside.table(schema, table)
                both = theirs[topic], ours[f"{OURS}{topic}"]
                existing = beside.snapshots and table != BEACON
                yield from _of_topic(both, variant, known, read, existing=existing)


def _alone(
    beside: Beside, theirs: dict[str, list[Record]], ours: dict[str, list[Record]]
) -> Iterator[Found]:
    """Take out topics of theirs that have existing rows alone, and yield each."""
    for variant in beside.variants:
        if variant.unwrapped:
            theirs.pop(f"{beside.name(variant)}.{MESSAGE}", None)  # no rows
        for schema, table in beside.seen:
            topic = topic_of(beside.name(variant), schema, table)
            if topic in theirs and f"{OURS}{topic}" not in ours:
                count = str(len(theirs.pop(topic)))
                known = beside.table(schema, table)
                only = Difference(("topic",), count, None)
                yield Found(topic, only, known, variant.options, existing=True)


def _of_topic(
    records: tuple[list[Record], list[Record]],
    variant: Variant,
    table: TableOf,
    read: Read,
    *,
    existing: bool = False,
) -> Iterator[Found]:
    shown = [[_Shown.of(one, read) for one in part] for part in records]
    pairs: list[tuple[_Shown, _Shown]] = []
    both = [[one for one in records if one.truncates] for records in shown]
    pairs += zip(*map(_by_place, both), strict=True)
    for part in sorted({one.record.partition for records in shown for one in records}):
        both = [
            [one for one in records if one.record.partition == part]
            for records in shown
        ]
        both = [[one for one in records if not one.truncates] for records in both]
        counts = [len(records) for records in both]
        where = f"{records[0][0].topic}, partition {part}"
        assert counts[0] == counts[1], f"{where}: {counts}\n{_first(both)}"
        pairs += zip(*both, strict=True)
    for their, our in pairs:
        where = f"{their.record.topic}/{their.record.partition}"
        where += f", record {their.record.offset}"
        moved = "__debezium.oldkey" in our.headers
        for one in _of_records(their, our):
            yield Found(
                where, one, table, variant.options, variant.unwrapped, moved, existing
            )


@dataclass(frozen=True)
class _Shown:
    """A record, and what it says."""

    record: Record
    key: Node
    value: Node
    headers: dict[str, Node]

    @classmethod
    def of(cls, record: Record, read: Read) -> Self:
        headers = {
            name: _tree_of_header(text.decode()) for name, text in record.headers or ()
        }
        key, value = map(read, (record.key, record.value))
        return cls(record, key, value, headers)

    @property
    def payload(self) -> dict[str, Node]:
        whole = self.value if isinstance(self.value, dict) else {}
        inside = whole.get("payload", whole)
        return inside if isinstance(inside, dict) else {}

    @property
    def truncates(self) -> bool:
        return self.payload.get("op") == '"t"'

    @property
    def lsn(self) -> int:
        source = self.payload["source"]
        assert isinstance(source, dict)
        return int(str(source["lsn"]))


def _first(both: Sequence[Sequence[_Shown]]) -> str:
    """Show the keys at which two lists begin to differ."""
    shown = [[one.key for one in records] for records in both]
    pairs = list(zip(*shown, strict=False))
    at = next((n for n, (one, two) in enumerate(pairs) if one != two), len(pairs))
    return "\n".join(str(keys[max(at - 2, 0) : at + 3]) for keys in shown)


def _by_place(records: list[_Shown]) -> list[_Shown]:
    return sorted(records, key=lambda one: one.lsn)


def _of_records(theirs: _Shown, ours: _Shown) -> Iterator[Difference]:
    if ours.truncates:
        assert ours.record.partition == 0
        yield Difference(("partition",), "any", "0")
    for name, one, other in (
        ("key", theirs.key, ours.key),
        ("value", theirs.value, ours.value),
    ):
        whole = isinstance(one, dict) and "payload" in one
        inside = () if whole or not isinstance(one, dict) else ("payload",)
        yield from of_one_text(list(differences(one, other, (name, *inside))))
    for name in sorted({*theirs.headers, *ours.headers}):
        found = theirs.headers.get(name), ours.headers.get(name)
        yield from differences(*found, ("header", name))


def of_one_text(found: list[Difference]) -> list[Difference]:
    """Leave out that the ids of two schemas differ, where that is due to another."""
    ids = [one for one in found if one.path[1:] == ("schema", "id")]
    schemas = [one for one in found if one.path[1:2] == ("schema",)]
    return [one for one in found if one not in ids or ids == schemas]


def _tree_of_header(text: str) -> Node:
    return tree(text) if text.startswith("{") else text
