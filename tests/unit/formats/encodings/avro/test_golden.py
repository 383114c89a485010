"""walstream writes in Avro what a real Debezium wrote with Apicurio's converter.

Byte for byte, but for what docs/debezium.md names: each such record is listed here.
"""

import re
from collections import Counter
from typing import Any, Final

from tests.support.oracles.avro_values import comparable
from tests.support.oracles.debezium_avro import AvroPairs, AvroRecord, golden, read

_NULL_SEQUENCE: Final = re.compile(rb'[\x00-\xff]\[(?:null|"0"),', re.DOTALL)


def _same(value: bytes | None) -> bytes | None:
    """Return a value without the first LSN of a sequence that has none."""
    return value and _NULL_SEQUENCE.sub(b"[,", value)


def _differing(theirs: AvroRecord, ours: AvroRecord, block: str) -> dict[str, Any]:
    one, other = (
        comparable(read(ours.value_schema, which.value)) for which in (theirs, ours)
    )
    rest = [{**which, block: None, "source": None} for which in (one, other)]
    assert rest[0] == rest[1]
    both = (one[block] or {}).keys() | (other[block] or {}).keys()
    pairs = {n: ((one[block] or {}).get(n), (other[block] or {}).get(n)) for n in both}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def test_records_are_those_of_debezium_but_for_the_differences() -> None:
    counts: Counter[str] = Counter()
    keys: dict[str, bytes | None] = {}
    values: dict[str, tuple[AvroRecord, AvroRecord]] = {}
    for theirs, ours in AvroPairs().pairs():
        name = f"{theirs.topic}/{counts[theirs.topic]}"
        counts[theirs.topic] += 1
        if theirs.key != ours.key:
            keys[name] = ours.key
        if _same(theirs.value) != _same(ours.value):
            values[name] = theirs, ours
    assert counts == {topic: len(records) for topic, records in golden().items()}
    # the columns of REPLICA IDENTITY USING INDEX; Debezium has those of the primary key
    codes = [b"\x04c1"] * 4 + [b"\x04c2"] * 3
    assert keys == {f"av.public.idxid/{n}": code for n, code in enumerate(codes)}
    end = values.pop("av.transaction/55")  # counts a logical message, too
    assert b"LogicalDecodingMessage" in (end[0].value or b"")
    found = {
        name: _differing(one, other, "transaction" if "message" in name else "after")
        for name, (one, other) in values.items()
    }
    # numeric(3,-2), a column of type name, and a timestamp beyond 64 bits
    types, wrapped = found["av.public.types/0"], found["av.public.types/4"]
    assert types.keys() == {"nneg", "nm"}
    assert types["nneg"][1] == b"{"  # 123, of a scale of -2
    assert types["nm"] == (None, "nam")
    assert wrapped == {"ts": (-9223372036853775810, 9223372036825200000)}
    # a logical message takes no number of its transaction
    assert found["av.message/0"]["total_order"] == (4, None)
    assert len(found) == 3
