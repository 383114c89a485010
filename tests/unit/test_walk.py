"""The walk's oracle finds what it is for, and its steps depend on the seed alone."""

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec

import orjson
import pytest

from tests.support.oracles.topic_reader import Record
from tests.support.programs.fork_server import MODULES
from tests.support.walk.oracle import Change, Fold, Order, Seen, Sight
from tests.support.walk.patch import HOLES
from tests.support.walk.shrinker import shrunk
from tests.support.walk.walk import Draw
from walstream.op import Kind, ReplicationOp, Table
from walstream.row import OMITTED, Value

_TABLE = Table("public", "t", ("id", "n"), (0,))
_TICKS = Table("public", "ticks", ("id",), (0,))


def _record(  # noqa: PLR0913 - what a record has
    kind: Kind,
    lsn: int,
    old: Sequence[Value] | None = None,
    new: Sequence[Value] | None = None,
    *,
    table: Table = _TABLE,
    key: str | None = None,
    partition: int = 0,
    seq_id: int = 0,
) -> Record:
    op = ReplicationOp(kind, table, lsn, seq_id)
    op.old = None if old is None else list(old)
    op.new = None if new is None else list(new)
    named = (new or old or [table.full_name])[0] if key is None else key
    return Record("topic", partition, lsn, orjson.dumps([named]), b"", [], 0, op)


def _sight(*rows: tuple[str, str | None], column: str = "n") -> Sight:
    columns = {1: "id", 2: column}
    return {9: Seen("public.t", columns, [1], [{1: one, 2: two} for one, two in rows])}


def _fold(*records: Record) -> Fold:
    fold = Fold()
    fold.restart(10, _sight(("1", "a")))
    fold.take(records)
    return fold


def test_what_agrees_is_not_complained_of() -> None:
    fold = _fold(
        _record(Kind.INSERT, 20, new=["2", None]),
        _record(Kind.UPDATE, 30, ["1", OMITTED], ["1", "b"]),
        _record(Kind.UPDATE, 40, None, ["2", OMITTED]),
        _record(Kind.DELETE, 50, ["1", "b"]),
    )
    assert fold.differences(_sight(("2", None))) == []


@pytest.mark.parametrize(
    "records",
    [
        [_record(Kind.INSERT, 20, new=["1", "a"])],  # doubled
        [
            _record(Kind.UPDATE, 20, None, ["2", "a"]),
            _record(Kind.DELETE, 30, ["2", "a"]),
        ],
        [_record(Kind.DELETE, 20, ["2", OMITTED])],  # of a row that never came
        [_record(Kind.UPDATE, 20, ["1", None], ["1", "a"])],  # a false NULL
        [_record(Kind.UPDATE, 20, None, ["1", "a"], key="public.t")],  # another key
        [_record(Kind.UPDATE, 20, None, ["1", "b"])],
        [_record(Kind.TRUNCATE, 20)],
        [],  # nothing came, see below
    ],
)
def test_what_does_not_fit_is_found(records: list[Record]) -> None:
    wanted = _sight(("1", "a")) if records else _sight(("1", "a"), ("2", "b"))
    assert _fold(*records).differences(wanted)


def test_a_replay_that_differs_is_found() -> None:
    first = _record(Kind.INSERT, 20, new=["2", "b"])
    again = Record("topic", 0, 21, first.key, b"another", [], 0, first.op)
    sight = _sight(("1", "a"), ("2", "b"))
    assert _fold(first, first).differences(sight) == []
    assert _fold(first, again).differences(sight)


def test_what_a_change_of_the_schema_does_is_done_at_its_lsn_and_no_more() -> None:
    fold = Fold()
    fold.restart(10, _sight(("1", "a"), ("2", "b")))
    # a leaf with row 1 is emptied, and the column gets another name
    fold.change(
        Change(25, _sight(("1", "a"), ("2", "b")), _sight(("2", "b"), column="m"))
    )
    fold.take([_record(Kind.UPDATE, 20, ["1", "a"], ["1", "x"])])
    assert fold.differences(_sight(("2", "b"), column="m")) == []
    assert fold.differences(_sight(("2", "c"), column="m"))  # that it did not do


def test_a_change_inside_a_transaction_is_done_behind_its_tick() -> None:
    fold = Fold()
    fold.restart(10, _sight(("1", "a")))
    fold.change(Change(90, _sight(("1", "a")), _sight(("1", "x")), tick="7"))
    fold.take(
        [
            _record(Kind.INSERT, 20, new=["7"], table=_TICKS),
            _record(Kind.UPDATE, 30, ["1", "x"], ["1", "y"]),
        ]
    )
    assert fold.differences(_sight(("1", "y"))) == []


def test_a_table_without_a_key_is_known_again_when_it_is_told() -> None:
    fold, keyless = Fold(), _sight(("1", "a"))
    fold.restart(10, _sight(("1", "a")))
    keyless[9].key = []
    fold.change(Change(15, _sight(("1", "a")), keyless))
    fold.take([_record(Kind.INSERT, 20, new=["2", "b"], key="public.t")])
    assert fold.differences(_sight(("1", "a"))) == []
    fold.know(_sight(("5", "e"))[9])
    assert fold.differences(_sight(("1", "a")))
    assert fold.differences(_sight(("5", "e"))) == []


def test_a_root_goes_by_its_former_name_until_it_is_looked_at() -> None:
    fold, was, now = Fold(), _sight(("1", "a")), _sight(("1", "a"))
    was[9].partitioned = now[9].partitioned = True
    now[9].name = "public.u"
    fold.restart(10, was)
    fold.change(Change(15, was, now))
    by_new = replace(_TABLE, name="u")
    fold.take([_record(Kind.UPDATE, 20, None, ["1", "b"])])
    now[9].rows = [{1: "1", 2: "c"}]
    fold.take(
        [
            _record(Kind.UPDATE, 20, None, ["1", "b"]),
            _record(Kind.UPDATE, 30, None, ["1", "c"], table=by_new),
        ]
    )
    assert fold.differences(now) == []
    fold.looked()
    fold.take([*[_record(Kind.UPDATE, 20)] * 2, _record(Kind.DELETE, 40, ["1", "c"])])
    assert fold.differences(now)


def test_what_a_key_change_could_not_read_is_null_until_the_row_goes() -> None:
    moved = [
        _record(Kind.DELETE, 20, ["1", OMITTED]),
        _record(Kind.INSERT, 20, new=["2", None], seq_id=1),
        _record(Kind.UPDATE, 30, ["2", "a"], ["2", "b"]),
    ]
    assert _fold(*moved).differences(_sight(("2", "b"))) == []
    assert _fold(*moved[:2]).differences(_sight(("2", "a")))
    moved[2].op.old = ["2", "x"]
    moved[1].op.new = ["2", "c"]
    assert _fold(*moved).differences(_sight(("2", "b")))


def test_what_is_done_to_a_leaf_while_it_is_out_has_to_be_told() -> None:
    fold, whole, without = Fold(), _sight(("1", "a"), ("2", "b")), _sight(("1", "a"))
    changed, other = _sight(("1", "a"), ("2", "c")), _sight(("5", "e"))
    other[8] = other.pop(9)
    other[8].name = "public.other"
    for sight in (whole, without, changed):
        sight[9].partitioned = True
    for end, fits in ((whole, True), (changed, False)):
        fold.restart(10, {**other, **whole})
        fold.change(Change(20, whole, without, detached="leaf"))
        fold.change(Change(30, {**other, **without}, {**other, **end}, attached="leaf"))
        fold.take([])
        assert (fold.differences({**other, **end}) == []) is fits


def test_order_in_a_partition_goes_on_or_back_and_repeats() -> None:
    one, two, three = (_record(Kind.INSERT, n, new=[f"{n}", "a"]) for n in (1, 2, 3))
    assert not list(Order().take([one, two, one, two, three]))
    assert list(Order().take([one, three, two]))
    assert list(Order().take([one, two, three, one, three]))
    assert list(Order().take([one, two, one, three]))
    other = _record(Kind.UPDATE, 4, None, ["1", "b"], partition=1)
    assert list(Order().take([one, other]))  # one key in two partitions


def test_a_failure_is_made_as_short_as_it_can_be() -> None:
    assert shrunk(range(100), lambda some: {13, 77} <= set(some), 60) == [13, 77]
    assert shrunk([1, 2, 3], lambda _: True, 0) == [1, 2, 3]


@pytest.mark.parametrize("name", {*MODULES, *(name for name, _ in HOLES.values())})
def test_what_is_loaded_or_patched_is_there(name: str) -> None:
    assert find_spec(name) is not None


def test_a_seed_draws_the_same_steps_each_time() -> None:
    first, again, other = (list(Draw(seed).steps()) for seed in ("a", "a", "b"))
    assert first == again
    assert first != other
    assert {act.kind.value for acts in first for act in acts} >= {"check", "schema"}
