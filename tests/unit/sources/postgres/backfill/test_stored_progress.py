"""What is written of a backfill, and how much of it for each table."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import orjson
import pytest

from walstream.sources.postgres.backfill.progress import BackfillProgress, Elsewhere
from walstream.sources.postgres.backfill.stored_progress import StoredProgress, read
from walstream.sources.postgres.incremental.progress import IncrementalProgress
from walstream.testing import MemoryStore

RECORD = BackfillProgress(
    99,
    ("public.c", "public.a", "public.b"),
    replace=("public.a",),
    others=("public.b",),
    rows=5,
    failed={"public.z": "broken"},
    elsewhere=Elsewhere("7 2026-01-01", 3),
    begun={"public.c": ("id",), "public.a": (), "public.b": None, "public.z": None},
)


class Counted(MemoryStore):
    """Counts what is written."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0
        self.documents = 0

    def write(self, documents: Mapping[str, Any]) -> None:
        super().write(documents)
        self.bytes += len(orjson.dumps(dict(documents)))
        self.documents += len(documents)


@pytest.fixture
def positions() -> MemoryStore:
    return MemoryStore()


def test_a_start_reads_what_was_stored(positions: MemoryStore) -> None:
    assert StoredProgress(positions).record is None
    StoredProgress(positions).store(RECORD)
    assert read(positions) == RECORD
    StoredProgress(positions).store(replace(RECORD, tables=("public.b",), begun={}))
    assert read(positions) == replace(
        RECORD, tables=("public.b",), begun={}, replace=()
    )


def test_tables_that_are_taken_out_are_out_for_who_reads_it_now_or_later(
    positions: MemoryStore,
) -> None:
    book = StoredProgress(positions)
    book.store(RECORD)
    book.done("public.c", 4)
    book.given_up("public.b", "no right")
    expected = RECORD.without("public.c", rows=4).without("public.b", failed="no right")
    assert book.record == expected
    assert read(positions) == expected
    book.done("public.a", 1)
    book.given_up("public.x", "unknown")
    assert read(positions) == book.record
    assert book.record is not None
    assert (book.record.tables, book.record.rows) == ((), 10)


def test_a_backfill_that_begins_leaves_nothing_of_the_former_one(
    positions: MemoryStore,
) -> None:
    book = StoredProgress(positions)
    book.store(RECORD)
    positions.write(book.begin(BackfillProgress(120, ("public.a",))))
    book.done("public.a", 2)
    assert read(positions) == book.record == BackfillProgress(120, (), rows=2)


def test_what_is_written_grows_with_the_tables_alone() -> None:
    def backfilled(count: int) -> Counted:
        positions = Counted()
        book = StoredProgress(positions)
        names = tuple(f"public.t{number:05}" for number in range(count))
        book.store(BackfillProgress(99, names))
        keys = dict.fromkeys(names, ("id",))
        book.store(BackfillProgress(99, names).under(120, keys).beginning(keys))
        for name in names:
            book.done(name, 10)
        return positions

    _assert_linear(backfilled)


def test_what_is_written_beside_a_stream_grows_with_the_tables_alone() -> None:
    def backfilled(count: int) -> Counted:
        positions = Counted()
        progress = IncrementalProgress(positions)
        progress.ask(f"public.t{number:05}" for number in range(count))
        for name, wish in progress.wishes().items():
            far = replace(wish, after=("1",), key=("id",), rows=10)
            progress.advance(name, far)
            progress.finish(name, far)
        return positions

    _assert_linear(backfilled)


def _assert_linear(backfilled: Any) -> None:
    few, many = backfilled(30), backfilled(300)
    assert many.documents <= 10 * few.documents
    assert many.bytes <= 11 * few.bytes  # the numbers in it have more digits
