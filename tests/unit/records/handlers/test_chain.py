"""Handlers one behind the other, by table; what one cannot take says so."""

import pickle
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from walstream.errors import ConfigError, HistoryError, Transient
from walstream.op import Kind, ReplicationOp, Table
from walstream.records.handlers import HANDLERS, Out, ProducerRecord
from walstream.records.handlers.chain import Chain, Spec, Unhandled

TABLE = Table("public", "t", ("id", "a", "b"), (0,))
ANY = ("*",)


def insert(*row: str, table: Table = TABLE) -> ReplicationOp:
    return ReplicationOp(Kind.INSERT, table, 8, 0, new=list(row))


def spec(kind: str, tables: tuple[str, ...] = ANY, **settings: Any) -> Spec:
    return Spec(kind, tables, settings)


class Doubling:
    """Each op twice, and a record between."""

    def __init__(self, _: Table, options: Mapping[str, Any]) -> None:
        if options.get("broken"):
            raise ValueError("s3cret")

    def handle(self, op: ReplicationOp) -> Iterator[Out]:
        if "wait" in (op.new or ()):
            raise Transient("later")
        if "stop" in (op.new or ()):
            raise HistoryError("no further")
        if "bad" in (op.new or ()):
            raise ValueError("row of s3cret")
        yield op
        yield ProducerRecord(b"k", b"v")
        yield op


@pytest.fixture(autouse=True)
def doubling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(HANDLERS, "double", Doubling)


def test_one_handlers_ops_go_to_the_next() -> None:
    chain = Chain(
        [
            spec("rename_columns", columns={"a": "c"}),
            spec("drop_columns", columns=["c"]),
        ]
    )
    (op,) = chain.handle(insert("1", "2", "3"))
    assert isinstance(op, ReplicationOp)
    assert op.table.columns == ("id", "b")
    assert list(op.new or ()) == ["1", "3"]


def test_the_same_table_goes_on_as_the_same() -> None:
    chain = Chain([spec("drop_columns", columns=["a"])])
    (one,), (other,) = (chain.handle(insert("1", "2", "3")) for _ in range(2))
    assert isinstance(one, ReplicationOp)
    assert isinstance(other, ReplicationOp)
    assert one.table is other.table


def test_a_finished_record_passes_the_rest_by() -> None:
    chain = Chain([spec("double"), spec("double")])
    op = insert("1", "2", "3")
    record = ProducerRecord(b"k", b"v")
    assert chain.handle(op) == [op, record, op, record, op, record, op]


def test_a_handler_is_for_its_tables_alone() -> None:
    chain = Chain([spec("drop_columns", ("public.t?",), columns=["a"])])
    op = insert("1", "2", "3")
    assert chain.handle(op) == [op]
    assert chain.handle(insert("1", table=Table("public", "tt", ("a", "b")))) != [op]


def test_what_is_never_taken_says_no_value() -> None:
    with pytest.raises(Unhandled) as raised:
        Chain([spec("double")]).handle(insert("bad", "", ""))
    assert str(raised.value) == "handler 'double': ValueError"


def test_what_may_pass_is_said_as_it_is() -> None:
    with pytest.raises(Transient, match="later"):
        Chain([spec("double")]).handle(insert("wait", "", ""))


def test_what_stops_the_sink_is_said_as_it_is() -> None:
    with pytest.raises(HistoryError, match="no further"):
        Chain([spec("double")]).handle(insert("stop", "", ""))


def test_an_outbox_is_one_for_its_tables() -> None:
    chain = Chain([spec("double"), spec("outbox", ("public.o*",))])
    assert chain.is_outbox(Table("public", "orders", ("id",)))
    assert not chain.is_outbox(TABLE)


def test_a_handler_that_cannot_be_made_is_refused_without_its_words() -> None:
    with pytest.raises(ConfigError) as raised:
        Chain([spec("double", broken=True)]).shape(TABLE)
    assert "'double'" in str(raised.value)
    assert "s3cret" not in str(raised.value)


def test_an_unknown_handler_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"walstream\.handlers"):
        Chain([spec("unknown")])


def test_a_shape_is_what_leaves_the_last() -> None:
    chain = Chain(
        [
            spec("drop_columns", columns=["a"]),
            spec("rename_columns", columns={"b": "a"}),
        ]
    )
    shape = chain.shape(TABLE)
    assert shape.columns == ("id", "a")
    assert shape.source_columns == ("id", "b")


def test_columns_that_no_table_has_are_named() -> None:
    chain = Chain(
        [
            spec("drop_columns", columns=["a", "typo"]),
            spec("rename_columns", columns={"a": "c"}),
        ]
    )
    first, second = chain.idle([TABLE])
    assert "tables has: typo" in str(first)
    assert "'rename_columns'" in str(second)
    assert chain.idle([]) == []


def test_what_it_is_made_of_is_picklable_and_shows_no_secret() -> None:
    settings = {"columns": ["a"], "text": None, "secret": "s3cret-s3cret-s3cret"}
    made = Spec("mask", ANY, settings)
    assert pickle.loads(pickle.dumps(made)) == made  # noqa: S301 - our own
    assert "s3cret" not in repr(made)
