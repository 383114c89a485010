"""One record in one line."""

import subprocess
import sys
from typing import Any

import pytest

from consumer.tail import line, other_line
from tests.support.loads.envelope import (
    debezium,
    envelope,
    read,
    record,
    with_schema,
)
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


def test_an_envelope_is_an_op() -> None:
    found = envelope("u", before={"id": 1}, after={"id": 2}, lsn=16, order=3)
    assert line(read(record(found))) == "t[0] 0/10/2 Update public.t id=2 (was 1)"


@pytest.mark.parametrize(
    ("topic", "number", "shown"),
    [
        ("dbz.transaction", 0, "t[0] BEGIN status=BEGIN id="),
        ("dbz.transaction", 1, "t[0] END status=END id="),
        ("__debezium-heartbeat.dbz", 0, "t[0] heartbeat ts_ms="),
        ("dbz.message", 0, "message prefix="),
    ],
)
def test_what_holds_no_op_is_shown(topic: str, number: int, shown: str) -> None:
    text = other_line(debezium(topic, number))
    assert text is not None
    assert shown in text
    assert text.isprintable()


@pytest.mark.parametrize(
    ("value", "headers", "shown"),
    [
        (
            {"id": 1, "v": None, "w": "a b", "x": [1]},
            {"walstream-position": b"16/3"},
            't[0] 0/10/3 row id=1 v=NULL w="a b" x=[1]',
        ),
        (with_schema({"id": 1}, {}), {}, None),
        (
            {"schema": {"name": "a.s.t.Value"}, "payload": {"id": 1}},
            {},
            "t[0] row id=1",
        ),
        ({"id": 1}, {}, None),
        ({"id": 1}, {"walstream-position": b"x"}, None),
        (b"[]", {}, None),
        (b"x", {}, None),
        (b"[" * 9999, {}, None),
    ],
)
def test_a_row_alone_is_shown_where_it_is_known_as_one(
    value: Any, headers: dict[str, bytes], shown: str | None
) -> None:
    assert other_line(record(value, headers=headers)) == shown


def test_as_a_program_it_is_the_verb() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "consumer.tail", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("usage: python -m consumer tail ")
