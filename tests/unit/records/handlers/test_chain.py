"""Handlers one behind the other, by table; what one cannot take says so."""

import asyncio
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from walstream import plugins
from walstream.errors import ConfigError, HistoryError, Transient
from walstream.op import Kind, ReplicationOp, Table, halves
from walstream.records.handlers import HANDLERS, Out, ProducerRecord
from walstream.records.handlers.chain import Chain, Spec, Unhandled

TABLE = Table("public", "t", ("id", "a", "b"), (0,))
ANY = ("*",)


def insert(*row: str, table: Table = TABLE) -> ReplicationOp:
    return ReplicationOp(Kind.INSERT, table, 8, 0, new=list(row))


def spec(kind: str, tables: tuple[str, ...] = ANY, **settings: Any) -> Spec:
    return Spec(kind, tables, settings)


class Doubling:
    """Each op, with a record behind it; some values ask for more."""

    def __init__(self, _: Table, options: Mapping[str, Any]) -> None:
        if options.get("broken"):
            raise ValueError("s3cret")
        if options.get("leaves"):
            sys.exit("s3cret")

    def handle(self, op: ReplicationOp) -> Iterator[Out]:
        if "wait" in (op.new or ()):
            raise Transient("later")
        if "stop" in (op.new or ()):
            raise HistoryError("no further")
        if "bad" in (op.new or ()):
            raise ValueError("row of s3cret")
        if "exit" in (op.new or ()):
            sys.exit("row of s3cret")
        if "cancel" in (op.new or ()):
            raise asyncio.CancelledError
        if "interrupt" in (op.new or ()):
            raise KeyboardInterrupt
        yield op
        yield ProducerRecord(b"k", b"v")
        if "twice" in (op.new or ()):
            yield op


class Plain:
    """What its options say, in place of each op."""

    def __init__(self, _: Table, options: Mapping[str, Any]) -> None:
        self._made: Callable[[ReplicationOp], Any] = options["made"]

    def handle(self, op: ReplicationOp) -> Any:
        return self._made(op)


PACKAGES = {"double": Doubling, "plain": Plain}


@pytest.fixture(autouse=True)
def packages(monkeypatch: pytest.MonkeyPatch) -> None:
    load = plugins.load

    def loaded(group: str, name: str) -> Any:
        return PACKAGES.get(name) or load(group, name)

    monkeypatch.setattr(plugins, "load", loaded)


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
    assert chain.handle(op) == [op, record, record]


def test_a_handler_is_for_its_tables_alone() -> None:
    chain = Chain([spec("drop_columns", ("public.t?",), columns=["a"])])
    op = insert("1", "2", "3")
    assert chain.handle(op) == [op]
    assert chain.handle(insert("1", table=Table("public", "tt", ("a", "b")))) != [op]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("bad", "ValueError"),
        ("exit", "SystemExit"),  # which would end the worker, for good at that
        ("cancel", "CancelledError"),
    ],
)
def test_what_is_never_taken_says_no_value(value: str, said: str) -> None:
    with pytest.raises(Unhandled) as raised:
        Chain([spec("double")]).handle(insert(value, "", ""))
    assert str(raised.value) == f"handler 'double': {said}"


def test_an_interruption_is_the_process_s() -> None:
    with pytest.raises(KeyboardInterrupt):
        Chain([spec("double")]).handle(insert("interrupt", "", ""))


def test_a_package_s_handler_may_change_the_op_it_gets() -> None:
    """Other sinks have the same rows, and a batch may be handled again."""

    def changed(op: ReplicationOp) -> list[Out]:
        for row in (op.old, op.new):
            assert isinstance(row, list)
            row[1] = f"M{row[1]}"
        op.kind = Kind.DELETE
        return [op]

    op = insert("1", "old", "new")
    op.old = ["1", "before", "new"]
    for _ in range(2):
        (made,) = Chain([spec("plain", made=changed)]).handle(op)
        assert isinstance(made, ReplicationOp)
        assert (made.kind, made.new) == (Kind.DELETE, ["1", "Mold", "new"])
        assert made.old == ["1", "Mbefore", "new"]
    assert (op.kind, op.new) == (Kind.INSERT, ["1", "old", "new"])
    assert op.old == ["1", "before", "new"]


def test_several_ops_of_one_stop_the_sink() -> None:
    """They have one name, and readers would leave out all but one."""
    with pytest.raises(HistoryError, match=r"'public.t' at \(0/8, 0\)") as raised:
        Chain([spec("double")]).handle(insert("twice", "", ""))
    assert "ProducerRecord" in raised.value.hint
    unnamed = Chain([spec("double")], several=True)  # where nobody goes by the name
    assert len(unnamed.handle(insert("twice", "", ""))) > 1


def test_halves_of_a_changed_key_are_two_ops() -> None:
    update = ReplicationOp(
        Kind.UPDATE, TABLE, 8, 3, ["1", "", ""], ["2", "", ""], key_changed=True
    )
    outs = Chain([spec("plain", made=halves)]).handle(update)
    assert [out.seq_id for out in outs if isinstance(out, ReplicationOp)] == [3, 4]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda _: None, r"returns None: return \[\] to skip an op"),
        (lambda _: ["a"], "returns a str, which is neither"),
        (lambda _: 1, "TypeError"),
    ],
)
def test_what_is_no_op_is_never_taken(
    made: Callable[[ReplicationOp], Any], said: str
) -> None:
    with pytest.raises(Unhandled, match=said):
        Chain([spec("plain", made=made)]).handle(insert("1", "", ""))


def test_a_lack_of_memory_may_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Our own handlers skip no op for it: of a package's it may be the op."""

    def lacking(_: ReplicationOp) -> Any:
        raise MemoryError

    with pytest.raises(Unhandled, match="MemoryError"):
        Chain([spec("plain", made=lacking)]).handle(insert("1", "", ""))
    monkeypatch.setitem(HANDLERS, "plain", Plain)
    with pytest.raises(Transient, match="'plain': no memory is left"):
        Chain([spec("plain", made=lacking)]).handle(insert("1", "", ""))


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


@pytest.mark.parametrize("how", ["broken", "leaves"])
def test_a_handler_that_cannot_be_made_is_refused_without_its_words(how: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Chain([Spec("double", ANY, {how: True})]).shape(TABLE)
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
