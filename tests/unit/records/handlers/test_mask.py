"""Masked values: hidden everywhere, alike where they were alike."""

import hashlib
import hmac
import json
from dataclasses import replace

import pytest

from walstream.errors import ConfigError
from walstream.formats.context import Context, SourceOrigin
from walstream.formats.event import EventEncoder
from walstream.op import ColumnFacts, Kind, ReplicationOp, Table
from walstream.records.handlers.mask import Mask
from walstream.records.key import KEY_FORMS
from walstream.row import OMITTED, UNCHANGED, Row

TABLE = Table("public", "t", ("id", "mail", "n"), (0,), (23, 25, 23))
SECRET = "a secret of some length"  # noqa: S105 - of this test


def settings(*columns: str, **how: str) -> dict[str, object]:
    return {"columns": list(columns), "text": None, "secret": None, **how}


def update(old: Row | None, new: Row) -> ReplicationOp:
    return ReplicationOp(Kind.UPDATE, TABLE, 8, 0, old=old, new=new)


def hashed(text: str) -> str:
    return hmac.new(SECRET.encode(), text.encode(), hashlib.sha256).hexdigest()


def test_a_text_stands_for_every_value_but_null_and_what_was_not_sent() -> None:
    mask = Mask(TABLE, settings("mail", "n", text="***"))
    (op,) = mask.handle(update([OMITTED, OMITTED, "5"], ["1", UNCHANGED, None]))
    assert op.old == [OMITTED, OMITTED, "***"]
    assert op.new == ["1", UNCHANGED, None]


def test_a_hash_is_that_of_the_value_with_the_secret() -> None:
    mask = Mask(TABLE, settings("mail", secret=SECRET))
    (op,) = mask.handle(update(["1", "a@b", "2"], ["1", "é", "2"]))
    assert op.old == ["1", hashed("a@b"), "2"]
    assert op.new == ["1", hashed("é"), "2"]


def test_the_op_that_came_is_not_changed() -> None:
    new = ["1", "a@b", "2"]
    list(Mask(TABLE, settings("mail", text="x")).handle(update(None, new)))
    assert new == ["1", "a@b", "2"]


def test_a_masked_key_is_masked_in_the_records_key() -> None:
    (op,) = Mask(TABLE, settings("id", secret=SECRET)).handle(
        update(None, ["1", "m", "2"])
    )
    form = KEY_FORMS["json"](op.table, op.table.key, SourceOrigin())
    assert form.render(op) == f'["{hashed("1")}"]'.encode()


def test_a_text_is_refused_for_a_key() -> None:
    with pytest.raises(ConfigError, match="id, part of its key"):
        Mask(TABLE, settings("id", "mail", text="x"))


def test_a_masked_number_is_a_text_to_every_format() -> None:
    (op,) = Mask(TABLE, settings("n", text="7")).handle(update(None, ["1", "m", "2"]))
    event = json.loads(EventEncoder(op.table, Context()).encode(op))
    assert event["Columns"] == {"id": 1, "mail": "m", "n": "7"}


def test_the_catalogs_facts_are_those_of_a_text() -> None:
    facts = (
        ColumnFacts(not_null=True, type_oid=23, type_name="int4"),
        ColumnFacts(type_oid=25, type_name="text"),
        ColumnFacts(not_null=True, default="7", type_oid=23, type_name="int4"),
    )
    table = replace(TABLE, modifiers=(-1, -1, 3), facts=facts)
    masked = Mask(table, settings("n", text="x")).table
    assert masked.type_oids == (23, 25, 25)
    assert masked.modifiers == (-1, -1, -1)
    text = ColumnFacts(not_null=True, type_oid=25, type_name="text")
    assert masked.facts == (*facts[:2], text)
