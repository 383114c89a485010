"""Rows as one snapshot saw them."""

from walstream.op import Table
from walstream.sources.postgres.incremental.chunk import Chunk
from walstream.sources.postgres.incremental.visibility import Visibility


def test_one_goes_on_behind_the_key_of_the_last_row_in_the_keys_order() -> None:
    table = Table("s", "t", ("a", "v", "b"), key=(0, 2))
    rows: list[list[str | None]] = [["1", None, "x"], ["2", "v", "y"]]
    chunk = Chunk(table, rows, (2, 0), Visibility(1), 0, last=True)
    assert chunk.names == ("b", "a")
    assert chunk.end(1) == ("x", "1")
    assert chunk.end(2) == ("y", "2")
    assert "'x'" not in repr(chunk)
