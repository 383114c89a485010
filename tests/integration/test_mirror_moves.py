"""Rows whose ops move to other partitions, or to another source and back."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from consumer.mirror import PostgresMirror
from consumer.op import Op
from tests.support.fixtures.postgres import Database
from tests.support.loads.op import make
from tests.support.oracles.key_mirror import apply
from walstream.op import Kind

pytestmark = pytest.mark.same_on_15

_LAYOUT = (("walstream-layout", b"2"),)
Connection = psycopg.Connection[Any]


class Pair:
    """Two instances of a mirror, each with a session."""

    def __init__(self, database: Database, sessions: list[Connection]) -> None:
        self.database = database
        self.sessions = sessions
        self.mirrors = [PostgresMirror(database.dsn) for _ in range(2)]

    def apply(self, instance: int, *ops: Op) -> None:
        apply(self.sessions[instance], self.mirrors[instance], list(ops))

    def rows(self) -> list[tuple[Any, ...]]:
        return self.database.fetch("SELECT id, n FROM t ORDER BY id")


@pytest.fixture
def pair(database: Database) -> Iterator[Pair]:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, org int, n int)")
    with psycopg.connect(database.dsn) as one, psycopg.connect(database.dsn) as other:
        yield Pair(database, [one, other])


def insert(lsn: int, *, key: str = "7", row: str = "7", **fields: Any) -> Op:
    """Write `n` = `lsn` to a row of organization 50."""
    new = {"id": row, "org": "50", "n": str(lsn)}
    return make(Kind.INSERT, "public.t", new=new, key=[key], lsn=lsn, **fields)


@pytest.mark.parametrize(
    "newer",
    [
        pytest.param({"key": "50"}, id="partition_key"),
        pytest.param({"headers": _LAYOUT}, id="more partitions"),
    ],
)
@pytest.mark.parametrize("batch", [1, 2], ids=["alone", "in a batch"])
def test_an_older_op_of_another_partition_and_instance_takes_no_effect(
    pair: Pair, newer: dict[str, Any], batch: int
) -> None:
    pair.apply(0, insert(10))
    pair.apply(1, *(insert(30 + n, partition=1, **newer) for n in range(batch)))
    pair.apply(0, *(insert(20 + n) for n in range(batch)))
    assert pair.rows() == [(7, 30 + batch - 1)]


def test_it_is_told(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    pair.apply(0, insert(10))
    pair.apply(0, insert(30, partition=1, headers=_LAYOUT))
    pair.apply(0, insert(40, partition=1, headers=_LAYOUT))
    (told,) = [one.message for one in caplog.records if "positions" in one.message]
    assert "public.t: positions of its rows are stored from now on" in told


def test_a_key_that_moved_and_came_back_is_followed(pair: Pair) -> None:
    """By the organization for a while: what came then lags behind."""
    pair.apply(0, insert(10, key="50", partition=1, row="8"))
    pair.apply(1, insert(30))
    pair.apply(0, insert(20, key="50", partition=1))
    assert pair.rows() == [(7, 30), (8, 10)]


def test_a_table_without_a_key_is_named_with_its_cure(
    pair: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    """Its older ops cannot be told: the Truncate of a backfill comes behind them."""
    pair.database.execute("CREATE TABLE k (a text)")

    def write(kind: Kind, lsn: int, **fields: Any) -> Op:
        return make(kind, "public.k", key=["public.k"], lsn=lsn, **fields)

    moved = {"partition": 1, "headers": _LAYOUT}
    row = {"a": "x"}
    pair.apply(0, write(Kind.DELETE, 20, old=row, **moved))
    pair.apply(0, write(Kind.INSERT, 10, new=row))
    assert pair.database.fetch("SELECT a FROM k") == [("x",)]
    pair.apply(0, write(Kind.INSERT, 30, new=row, **moved))
    (told,) = [one.message for one in caplog.records if "no key" in one.message]
    assert "public.k has no key" in told
    assert "walstream backfill public.k --replace" in told
    pair.apply(0, write(Kind.TRUNCATE, 40, partitions=2, **moved))
    pair.apply(0, write(Kind.INSERT, 41, new=row, **moved))
    assert pair.database.fetch("SELECT a FROM k") == [("x",)]


def test_one_that_was_rolled_back_is_done_again(pair: Pair) -> None:
    with pair.sessions[1].transaction(force_rollback=True):
        pair.apply(1, insert(30, key="50", partition=1))
    pair.apply(1, insert(30, key="50", partition=1))
    pair.apply(0, insert(20))
    assert pair.rows() == [(7, 30)]


def test_one_that_was_rolled_back_is_done_again_without_batches(pair: Pair) -> None:
    """As by a handler of one's own, which calls the mirror's."""
    tx, mirror = pair.sessions[1], pair.mirrors[1]
    for rolled_back in (True, False):
        with tx.transaction(force_rollback=rolled_back):
            for lsn in (30, 31):
                op = insert(lsn, partition=1, headers=_LAYOUT)
                mirror.handle_message(tx, op)
    pair.apply(0, insert(20))
    assert pair.rows() == [(7, 31)]


def test_it_waits_for_who_writes_without_positions(pair: Pair) -> None:
    pair.sessions[1].execute("SET lock_timeout = 1")
    pair.sessions[1].commit()
    with pair.sessions[0].transaction():
        pair.apply(0, insert(10))
        with pytest.raises(psycopg.errors.LockNotAvailable):
            pair.apply(1, insert(30, key="50", partition=1))
    pair.apply(1, insert(30, key="50", partition=1))
    pair.apply(0, insert(20))
    assert pair.rows() == [(7, 30)]


def source(name: str) -> dict[str, Any]:
    return {"headers": (("walstream-source", f"1/{name}/0".encode()),)}


@pytest.mark.parametrize("batch", [1, 2], ids=["alone", "in a batch"])
def test_a_source_that_returns_is_newer_than_what_came_between(
    pair: Pair, batch: int
) -> None:
    pair.mirrors = [PostgresMirror(pair.database.dsn, row_positions=True)] * 2
    ours, theirs = source("a"), source("b")

    def apply(lsn: int, partition: int, **fields: Any) -> int:
        """Have other rows written beside, so that it is no batch of one."""
        rest = [insert(lsn, row="1", partition=partition)] * (batch - 1)
        pair.apply(0, insert(lsn, partition=partition, **fields), *rest)
        return int(dict(pair.rows())[7])

    assert apply(100, 0, **ours) == 100
    assert apply(90, 1, **ours) == 100
    assert apply(500, 0, **theirs) == 500
    assert apply(110, 1, **ours) == 500  # it has not returned yet
    assert apply(120, 0, **ours) == 120
    assert apply(115, 1) == 120  # of before, and lags
    assert apply(130, 1) == 130  # nobody else wrote there meanwhile
    assert apply(140, 2, **ours) == 140
    assert apply(510, 0, **theirs) == 510
    assert apply(505, 2, **theirs) == 510
    assert apply(150, 0, **ours) == 150
    assert apply(160, 1) == 160
