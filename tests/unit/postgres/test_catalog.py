"""In which order the catalog and the WAL's end are looked at."""

from typing import Any

from walstream.postgres import catalog


class Busy:
    """A server whose WAL grows with whatever is asked of it."""

    def __init__(self) -> None:
        self.end = 16
        self.tables_at = 0
        self.rows: list[tuple[Any, ...]] = []

    def execute(self, query: str, _parameters: object = None) -> "Busy":
        self.end += 1
        if "insert_lsn" in query:
            self.rows = [(f"0/{self.end:X}",)]
        else:
            self.tables_at, self.rows = self.end, []
        return self

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self.rows

    def fetchone(self) -> tuple[Any, ...]:
        return self.rows[0]


def test_what_is_found_lies_below_the_end_that_is_told_with_it() -> None:
    busy: Any = Busy()
    _, end = catalog.tables_and_end(busy)
    assert end > busy.tables_at
