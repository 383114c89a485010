"""COPY text against its plain twin: what is written by the manual reads back."""

from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import texts
from walstream.spark.copy_text import rows

_ESCAPES = {
    "\\": "\\\\",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}
VALUES = st.none() | texts | st.text("\\Nnt\n\t\r", max_size=6)


def written(value: str | None) -> str:
    """Write as CopyAttributeOutText in PostgreSQL's copyto.c does."""
    if value is None:
        return "\\N"
    return "".join(_ESCAPES.get(letter, letter) for letter in value)


@given(st.integers(1, 4).flatmap(lambda width: st.lists(st.tuples(*[VALUES] * width))))
def test_what_is_written_reads_back(table: list[tuple[str | None, ...]]) -> None:
    block = "".join("\t".join(map(written, row)) + "\n" for row in table)
    width = len(table[0]) if table else 1
    assert rows(block.encode(), width) == [list(row) for row in table]
