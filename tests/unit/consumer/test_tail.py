"""One op in one line."""

from consumer.tail import line
from tests.support.loads.op import make
from walstream.op import Kind

T = "public.t"


def test_an_insert_shows_its_values() -> None:
    op = make(Kind.INSERT, T, new={"id": "1", "n": None, "b c": "x y"}, lsn=16)
    assert line(op) == 'public.t[0] 0/10/0 Insert public.t id=1 n=NULL "b c"="x y"'


def test_an_update_shows_what_changed_and_what_was_not_sent() -> None:
    op = make(
        Kind.UPDATE,
        T,
        new={"id": "1", "n": "2"},
        old={"id": "1", "n": "1"},
        columns=("id", "n", "big"),
    )
    assert line(op).endswith("id=1 n=2 (was 1) big=(not sent)")


def test_a_delete_shows_the_old_row_and_a_truncate_none() -> None:
    assert line(make(Kind.DELETE, T, old={"id": "1"})).endswith("Delete public.t id=1")
    assert line(make(Kind.TRUNCATE, T, columns=("id",))).endswith("Truncate public.t")


def test_a_backfilled_row_is_told() -> None:
    assert "(snapshot)" in line(make(Kind.INSERT, T, new={"id": "1"}, snapshot=True))


def test_no_value_breaks_the_line_or_looks_like_null() -> None:
    row = {
        "a": "x\ny",
        "b": "NULL",
        "c": "",
        "d": "\x1b[31m",
        "e": "\u2028",
        "f": "h\u00e9",
    }
    text = line(make(Kind.INSERT, T, new=row))
    assert text.isprintable()
    assert text.endswith(r'a="x\ny" b="NULL" c="" d="\u001b[31m" e="\u2028" f=hé')
