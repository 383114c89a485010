"""Filters of duplicates; the one in PostgreSQL is in tests/integration."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import lmdb
import pytest

from consumer.dedupe import Seen, SeenInLmdb, SeenInMemory
from consumer.row_message import RowMessage
from walstream.formats.row import row_hash


def message(number: int, table: str = "t") -> RowMessage:
    data = {"id": number}
    return RowMessage(1.0, "source", table, data, row_hash(data))


@pytest.fixture(params=["memory", "lmdb"])
def seen(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Seen]:
    with ExitStack() as stack:
        if request.param == "memory":
            yield SeenInMemory()
        else:
            yield stack.enter_context(SeenInLmdb(tmp_path))


def test_what_was_added_is_seen(seen: Seen) -> None:
    assert message(1) not in seen
    seen.add(message(1), message(2))
    seen.add(message(1))
    assert message(1) in seen
    assert message(2) in seen
    assert message(3) not in seen
    assert message(1, "other") not in seen


def test_memory_forgets_the_oldest_beyond_its_limit() -> None:
    seen = SeenInMemory(limit=2)
    seen.add(message(1), message(2), message(1), message(3))
    assert [number for number in (1, 2, 3) if message(number) in seen] == [2, 3]
    assert len(seen) == 2


def test_memory_refuses_to_hold_nothing() -> None:
    with pytest.raises(ValueError, match="limit"):
        SeenInMemory(limit=0)


def test_lmdb_outlives_its_process_and_forgets_by_age(tmp_path: Path) -> None:
    now = [1_000.0]
    passed = lambda: now[0]  # noqa: E731 - a clock
    options: dict[str, Any] = {"max_age_s": 100, "clock": passed, "steady": passed}
    with SeenInLmdb(tmp_path, **options) as seen:
        seen.add(message(1))
        now[0] += 60
        seen.add(message(2))
    with SeenInLmdb(tmp_path, **options) as seen:
        assert message(1) in seen
        now[0] += 60
        assert message(1) not in seen
        assert message(2) in seen
        seen.add(message(3))
        assert len(seen) == 2  # the first is gone from the disk, too


def test_lmdb_forgets_nothing_when_the_clock_is_set(tmp_path: Path) -> None:
    wall, passed = [10.0 * 86_400], [0.0]
    clocks: dict[str, Any] = {"clock": lambda: wall[0], "steady": lambda: passed[0]}
    with SeenInLmdb(tmp_path, **clocks) as seen:
        seen.add(message(1))
        for days in (8, -17, 30):
            wall[0] += days * 86_400
            assert message(1) in seen
            seen.add(message(2))
            assert message(1) in seen
    wall[0] += 30 * 86_400
    with SeenInLmdb(tmp_path, **clocks) as seen:
        assert message(1) in seen
        passed[0] += 7 * 86_400
        assert message(1) not in seen


def test_lmdb_goes_on_with_an_earlier_versions_stamps(tmp_path: Path) -> None:
    wall, passed = [10.0 * 86_400], [0.0]
    clocks: dict[str, Any] = {"clock": lambda: wall[0], "steady": lambda: passed[0]}
    with SeenInLmdb(tmp_path, **clocks) as seen:
        seen.add(message(1))
    with lmdb.open(str(tmp_path), max_dbs=3) as environment:
        time = environment.open_db(b"time")
        with environment.begin(write=True) as transaction:
            transaction.drop(time)
    wall[0] += 86_400 / 2
    with SeenInLmdb(tmp_path, **clocks) as seen:
        passed[0] += 6 * 86_400
        assert message(1) in seen
        passed[0] += 86_400
        assert message(1) not in seen


def test_lmdb_forgets_the_oldest_beyond_its_limit(tmp_path: Path) -> None:
    now = [1_000.0]
    with SeenInLmdb(tmp_path, limit=2, clock=lambda: now[0]) as seen:
        for number in (1, 2, 1, 3):
            now[0] += 1
            seen.add(message(number))
        assert [number for number in (1, 2, 3) if message(number) in seen] == [1, 3]


def test_lmdb_takes_as_many_as_it_promises_to_hold(tmp_path: Path) -> None:
    limit = 20_000
    with SeenInLmdb(tmp_path, limit=limit) as seen:
        for start in range(0, 3 * limit, 5_000):
            seen.add(*map(message, range(start, start + 5_000)))
        assert len(seen) == limit


def test_nothing_heavy_is_loaded_by_an_application() -> None:
    heavy = ("lmdb", "pyspark", "typer", "pydantic", "sqlalchemy")
    code = f"import consumer, sys; sys.exit(any(n in sys.modules for n in {heavy}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
