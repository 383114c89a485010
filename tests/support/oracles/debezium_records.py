"""The records of Debezium and of walstream compared, one by one and in order.

In each partition of each topic: keys, values, schemas, headers. A TRUNCATE has no key,
and may be in any partition: those of a topic are compared by themselves.
"""

import json
from collections.abc import Iterator, Sequence

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
    key_of,
    value_of,
)
from tests.support.programs.debezium_variant import (
    MESSAGE,
    OURS,
    TRANSACTION,
    Variant,
)
from walstream.formats.debezium.names import topic as topic_of


def explained(beside: Beside) -> tuple[set[str], list[Found]]:
    """Return the rules that explain differences, and what none explains."""
    used: set[str] = set()
    others: list[Found] = []
    for found in compared(beside):
        if is_processing_time(found):
            continue
        names = [name for name, rule in RULES.items() if rule(found)]
        used.update(names)
        if not names:
            others.append(found)
    return used, others


def compared(beside: Beside) -> Iterator[Found]:
    """Yield each difference of the records that both have written."""
    theirs, ours = map(by_topic, (beside.theirs.records, beside.ours.records))
    yield from _alone(beside, theirs, ours)
    assert {f"{OURS}{topic}" for topic in theirs} == ours.keys()
    for variant in beside.variants:
        for word in (MESSAGE, TRANSACTION):
            topic = f"{beside.name(variant)}.{word}"
            if topic in theirs:
                known = TableOf({}, is_partition=False)
                yield from _of_topic(
                    theirs[topic], ours[f"{OURS}{topic}"], variant, known
                )
        for schema, table in beside.seen:
            topic = topic_of(beside.name(variant), schema, table)
            if topic in theirs:
                known = beside.table(schema, table)
                both = theirs[topic], ours[f"{OURS}{topic}"]
                existing = beside.snapshots and table != BEACON
                yield from _of_topic(*both, variant, known, existing=existing)


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
    theirs: list[Record],
    ours: list[Record],
    variant: Variant,
    table: TableOf,
    *,
    existing: bool = False,
) -> Iterator[Found]:
    parts = sorted({record.partition for record in (*theirs, *ours)})
    pairs: list[tuple[Record, Record]] = []
    both = [[one for one in records if _truncates(one)] for records in (theirs, ours)]
    pairs += zip(*map(_by_place, both), strict=True)
    for part in parts:
        both = [
            [one for one in records if one.partition == part and not _truncates(one)]
            for records in (theirs, ours)
        ]
        counts = [len(records) for records in both]
        where = f"{theirs[0].topic}, partition {part}"
        assert counts[0] == counts[1], f"{where}: {counts}\n{_first(both)}"
        pairs += zip(*both, strict=True)
    for their, our in pairs:
        where = f"{their.topic}/{their.partition}, record {their.offset}"
        moved = any(name == "__debezium.oldkey" for name, _ in our.headers or ())
        for one in _of_records(their, our):
            yield Found(
                where, one, table, variant.options, variant.unwrapped, moved, existing
            )


def _first(both: Sequence[Sequence[Record]]) -> str:
    """Show the keys at which two lists begin to differ."""
    shown = [[key_of(one) for one in records] for records in both]
    pairs = list(zip(*shown, strict=False))
    at = next((n for n, (one, two) in enumerate(pairs) if one != two), len(pairs))
    return "\n".join(str(keys[max(at - 2, 0) : at + 3]) for keys in shown)


def _truncates(record: Record) -> bool:
    return '"op":"t"' in (value_of(record) or "")


def _by_place(records: list[Record]) -> list[Record]:
    return sorted(records, key=lambda one: _lsn(value_of(one) or ""))


def _lsn(value: str) -> int:
    found = json.loads(value)
    return int(found.get("payload", found)["source"]["lsn"])


def _of_records(theirs: Record, ours: Record) -> Iterator[Difference]:
    if _truncates(ours):
        assert ours.partition == 0
        yield Difference(("partition",), "any", "0")
    for name, of in (("key", key_of), ("value", value_of)):
        one, other = (_tree(of(record)) for record in (theirs, ours))
        whole = isinstance(one, dict) and "payload" in one
        inside = () if whole or not isinstance(one, dict) else ("payload",)
        yield from differences(one, other, (name, *inside))
    headers = [
        {name: text.decode() for name, text in record.headers or ()}
        for record in (theirs, ours)
    ]
    for name in sorted({*headers[0], *headers[1]}):
        one, other = (_tree_of_header(found.get(name)) for found in headers)
        yield from differences(one, other, ("header", name))


def _tree(text: str | None) -> Node:
    return None if text is None else tree(text)


def _tree_of_header(text: str | None) -> Node:
    is_json = text is not None and text.startswith("{")
    return _tree(text) if is_json else text
