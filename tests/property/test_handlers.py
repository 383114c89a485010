"""Whatever happens to a table, a filter's reader holds the rows of it that match."""

from collections.abc import Iterator
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from walstream.op import Kind, ReplicationOp, Table, halves
from walstream.records.handlers import ProducerRecord
from walstream.records.handlers.chain import Chain, Spec
from walstream.row import OMITTED, NotSent, Row

TABLE: Final = Table("public", "t", ("id", "tenant", "v"), (0,))
TENANTS: Final = ["a", "b", None]
_NOTHING: Final = {"equals": None, "one_of": None, "is_null": None}
_ALL: Final = ["insert", "update", "delete", "truncate"]
State = dict[str, tuple[str | None, ...]]

changes = st.lists(
    st.tuples(
        st.sampled_from(["put", "delete", "truncate"]),
        st.sampled_from("123"),
        st.sampled_from("123"),  # the key that an update moves it to
        st.sampled_from(TENANTS),
        st.sampled_from("xy"),
    ),
    max_size=30,
)
tests = st.sampled_from(
    [{"equals": "a"}, {"one_of": ["a", "b"]}, {"is_null": True}, {"is_null": False}]
)


def ops(table: State, story: list[tuple[str, ...]]) -> Iterator[ReplicationOp]:
    """Do all of it to a table under REPLICA IDENTITY FULL; tell it as ops."""
    for lsn, (what, key, moved, tenant, v) in enumerate(story):
        old = table.get(key)
        if what == "truncate":
            table.clear()
            yield ReplicationOp(Kind.TRUNCATE, TABLE, lsn, 0)
        elif what == "delete":
            if table.pop(key, None) is not None:
                yield ReplicationOp(Kind.DELETE, TABLE, lsn, 0, old=old)
        elif old is None:
            table[key] = (key, tenant, v)
            yield ReplicationOp(Kind.INSERT, TABLE, lsn, 0, new=table[key])
        elif moved == key or moved not in table:
            del table[key]
            table[moved] = (moved, tenant, v)
            yield ReplicationOp(
                Kind.UPDATE,
                TABLE,
                lsn,
                0,
                old=old,
                new=table[moved],
                key_changed=moved != key,
            )


def read(copy: State, op: ReplicationOp) -> None:
    """Do as a reader does, who takes nothing for granted but its own rows."""
    if op.kind is Kind.TRUNCATE:
        copy.clear()
    elif op.kind is Kind.DELETE:
        assert copy.pop(text(op.old)) is not None
    elif op.kind is Kind.INSERT:
        assert text(op.new) not in copy
        copy[text(op.new)] = row(op.new)
    else:
        assert text(op.new) in copy
        copy[text(op.new)] = row(op.new)


def row(values: Row | None) -> tuple[str | None, ...]:
    assert values is not None
    assert not any(isinstance(value, NotSent) for value in values)
    return tuple(value for value in values if not isinstance(value, NotSent))


def text(values: Row | None) -> str:
    return str((values or ())[0])


def matches(test: dict[str, object], value: str | None) -> bool:
    match test:
        case {"equals": wanted}:
            return value == wanted
        case {"one_of": list(wanted)}:
            return value in wanted
        case _:
            return (value is None) is test["is_null"]


@given(changes, tests)
def test_a_filters_reader_holds_the_rows_that_match(
    story: list[tuple[str, ...]], test: dict[str, object]
) -> None:
    settings = {"operations": _ALL, "column": "tenant", **_NOTHING, **test}
    chain = Chain([Spec("filter", ("*",), settings)])
    table: State = {}
    copy: State = {}
    numbers = []
    for op in ops(table, story):
        for out in chain.handle(op):
            assert not isinstance(out, ProducerRecord)
            for half in halves(out) if out.key_changed else (out,):
                read(copy, half)
                numbers.append((half.lsn, half.seq_id))
    assert copy == {key: row for key, row in table.items() if matches(test, row[1])}
    assert numbers == sorted(set(numbers))


@given(changes, st.permutations(["drop_columns", "rename_columns", "mask"]))
def test_rows_keep_their_shape_through_any_chain(
    story: list[tuple[str, ...]], kinds: list[str]
) -> None:
    settings: dict[str, Any] = {
        "drop_columns": {"columns": ["tenant"]},
        "rename_columns": {"columns": {"v": "w"}},
        "mask": {"columns": ["v", "w"], "text": "*", "secret": None},
    }
    chain = Chain([Spec(kind, ("*",), settings[kind]) for kind in kinds])
    for op in ops({}, story):
        op.old = [OMITTED] * 3 if op.old and op.kind is Kind.UPDATE else op.old
        (out,) = chain.handle(op)
        assert not isinstance(out, ProducerRecord)
        assert out.table.columns == ("id", "w")
        for values in (out.old, out.new):
            assert values is None or len(values) == 2
            assert values is None or values[1] in {"*", OMITTED}
        assert out.new is None or op.new is None or out.new[0] == op.new[0]
