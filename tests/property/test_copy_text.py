"""COPY text against its plain twin: what is written by the manual reads back."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies import texts
from walstream.formats.context import SourceOrigin
from walstream.op import Kind, ReplicationOp, Table
from walstream.records.key import KEY_FORMS
from walstream.sources.postgres.backfill.copy_text import plain_keys, rows

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


PLAIN = st.none() | st.text("aé\u2028,[' %5", max_size=5)


@given(
    st.lists(st.tuples(PLAIN, PLAIN, PLAIN), min_size=1),
    st.sets(st.integers(0, 2)),
    st.sampled_from(sorted(KEY_FORMS)),
)
def test_plain_keys_are_those_of_the_rows(
    table: list[tuple[str | None, ...]], columns: set[int], form: str
) -> None:
    shape = Table("s", "t", ("a", "b", "c"), tuple(sorted(columns)))
    key = KEY_FORMS[form](shape, shape.key, SourceOrigin())
    block = "".join("\t".join(map(written, row)) + "\n" for row in table).encode()
    found = plain_keys(block, key.columns, key.around)
    if found is None:
        named = [row[column] for row in table for column in columns]
        assert not key.columns or None in named
        return
    ops = (ReplicationOp(Kind.INSERT, shape, 7, 0, new=row) for row in table)
    assert found == [key.render(op) for op in ops]
