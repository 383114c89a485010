"""Whatever a record holds: it is shown, and drives no terminal."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from rich.cells import cell_len

from tests.support.oracles import vectors
from tests.support.strategies import lsns, names
from walstream.cli.tail import json_lines
from walstream.cli.tail.change import Change, read
from walstream.cli.tail.layout import plain
from walstream.cli.tail.screen import lines
from walstream.formats.op import OpEncoder
from walstream.kafka.topic_reader import TopicRecord
from walstream.op import Kind, ReplicationOp, Table

SCHEMA = TypeAdapter(json_lines.Line)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3)
    ),
    max_leaves=8,
)


@st.composite
def nearly_records(draw: st.DrawFn) -> bytes:
    """Draw a vector in which some bytes are others."""
    value = draw(st.sampled_from(vectors.ALL))
    begin = draw(st.integers(0, len(value)))
    end = draw(st.integers(begin, min(len(value), begin + 8)))
    return value[:begin] + draw(st.binary(max_size=8)) + value[end:]


@st.composite
def nearly_shapes(draw: st.DrawFn) -> bytes:
    """Draw a vector in which some value is any other."""
    fields: dict[str, Any] = json.loads(draw(st.sampled_from(vectors.ALL)))
    fields[draw(st.sampled_from(sorted(fields)))] = draw(values)
    return json.dumps(fields).encode()


any_bytes = st.binary(max_size=300) | texts.map(str.encode)
keys = st.none() | any_bytes
times = st.none() | st.integers(-(2**63), 2**63 - 1)


def shown(
    key: bytes | None, value: bytes | None, time: int | None
) -> tuple[Change, str]:
    """Show a record in every way; claim what holds of any."""
    change = read(TopicRecord("topic", 0, 0, key, value, [], time))
    for full in (False, True):
        for width in (20, 80, None):
            for line in map(plain, lines(change, width, full=full)):
                assert line.isprintable()
                assert width is None or cell_len(line) <= width
    text = json_lines.line(change)
    assert text.isprintable()
    SCHEMA.validate_json(text)
    return change, text


@given(keys, st.none() | any_bytes | nearly_records() | nearly_shapes(), times)
def test_any_bytes_are_shown_and_drive_nothing(
    key: bytes | None, value: bytes | None, time: int | None
) -> None:
    shown(key, value, time)


@given(st.lists(names, min_size=1, max_size=5, unique=True), st.data(), lsns)
def test_no_value_of_an_op_is_lost(
    columns: list[str], data: st.DataObject, lsn: int
) -> None:
    size = st.just(len(columns))
    row = data.draw(size.flatmap(lambda n: st.lists(st.none() | texts, min_size=n)))
    table = Table("s", "t", tuple(columns))
    op = ReplicationOp(Kind.INSERT, table, lsn, 0, new=row[: len(columns)])
    _, text = shown(None, OpEncoder(table).encode(op), None)
    assert json.loads(text)["new"] == dict(zip(columns, row, strict=False))


@given(st.dictionaries(texts, values, max_size=5))
def test_no_value_of_an_event_is_lost(columns: dict[str, Any]) -> None:
    value = vectors.EVENT % (b"insert", json.dumps(columns).encode())
    _, text = shown(None, value, None)
    assert json.loads(text)["new"] == columns
