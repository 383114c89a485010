"""Keys, values and headers by type; what EventRouter's are: test_outbox.py."""

from dataclasses import replace
from typing import Any

import pytest

from walstream.config.handler import OutboxHandler
from walstream.errors import ConfigError, WalstreamError
from walstream.op import Kind, ReplicationOp, Table
from walstream.records.handlers.outbox_form import OutboxForm
from walstream.records.handlers.outbox_settings import OutboxSettings
from walstream.telemetry.json_codec import read

COLUMNS = ("id", "aggregatetype", "aggregateid", "payload", "x")
TABLE = Table("public", "outbox", COLUMNS, (0,), (20, 25, 23, 25, 25))


def form(x_oid: int = 25, modifier: int = -1, **told: Any) -> OutboxForm:
    made = OutboxHandler(kind="outbox", tables=["public.*"], **told)
    settings = read(OutboxSettings, made.model_dump(exclude={"kind", "tables"}))
    types, modifiers = (*TABLE.type_oids[:-1], x_oid), (-1, -1, -1, -1, modifier)
    return OutboxForm(replace(TABLE, type_oids=types, modifiers=modifiers), settings)


def op(payload: str | None = "{}", x: str | None = None) -> ReplicationOp:
    row = ["1", "Order", "17", payload, x]
    return ReplicationOp(Kind.INSERT, TABLE, 9, 4, new=row)


@pytest.mark.parametrize(
    ("oid", "modifier", "text", "header"),
    [
        (1700, (10 << 16 | 8) + 4, "0.00000010", b"1.0E-7"),  # numeric(10, 8)
        (1700, (10 << 16 | 2) + 4, "12.30", b"12.30"),
        (16, -1, "t", b"true"),
        (701, -1, "1e+22", b"1.0E22"),
        (17, -1, r"\x00ff", b"AP8="),
        (1082, -1, "1970-01-02", b"1"),
        (3802, -1, '{"a": "b"}', b'{"a": "b"}'),
    ],
)
def test_a_header_is_what_connect_prints(
    oid: int, modifier: int, text: str, header: bytes
) -> None:
    made = form(oid, modifier, headers={"h": "x"})
    assert made.headers(op(x=text)) == [("id", b"1"), ("h", header)]
    assert made.headers(op())[1] == ("h", None)


def test_bytes_are_themselves_as_payload_and_as_key() -> None:
    made = form(17, payload="x", key="x")
    assert made.value(op(x=r"\x00ff")) == made.key(op(x=r"\x00ff")) == b"\x00\xff"
    assert made.key(op()) is None


@pytest.mark.parametrize("payload", [None, "", " \t\n\x00\x1f "])
def test_an_empty_payload_is_kept_or_a_tombstone(payload: str | None) -> None:
    kept = form().value(op(payload))
    assert kept == (None if payload is None else payload.encode())
    told: dict[str, Any] = {"empty_payload": "tombstone", "payload_form": "json_string"}
    assert form(**told).value(op(payload)) is None
    assert form(**told).value(op("\u00a0")) is not None  # no blank of Java's trim


def test_a_payload_that_is_no_text_is_not_expanded() -> None:
    assert form(23, payload="x", payload_form="expand").value(op(x="5")) == b"5"


def test_the_name_of_an_envelope_has_the_route() -> None:
    told: dict[str, Any] = {"payload_form": "expand", "schemas": True}
    envelope = {**told, "envelope": {"e": "x"}}
    for prefix, begins in (("", b'"public.'), ("app", b'"app.public.')):
        value = form(**envelope, schema_prefix=prefix).value(op()) or b""
        assert begins + b'outbox.Order.Value"},"payload"' in value


def test_a_column_without_a_form_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"'x' .* has a type without a form"):
        form(603, headers={"h": "x"})  # box
    form(603)  # nobody reads it


def test_a_value_that_does_not_fit_is_named_without_it() -> None:
    with pytest.raises(WalstreamError, match=r"column 'x' .*\(0/9, 4\)") as caught:
        form(23, headers={"h": "x"}).headers(op(x="s3cret"))
    assert "s3cret" not in str(caught.value)
