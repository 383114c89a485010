"""Debezium's values against Python's own types; any text is written, or refused."""

import json
import math
import re
from binascii import a2b_base64
from datetime import datetime, timedelta
from decimal import Context, Decimal
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from tests.property.test_event import MESSY, literal
from tests.support.strategies import lsns, names, texts
from walstream.formats.debezium import (
    DebeziumKey,
    DebeziumOptions,
    EnvelopeEncoder,
    SinkTurn,
    composite_text,
    float_text,
    interval,
    numeric,
)
from walstream.formats.debezium import calendar_text as calendar
from walstream.formats.debezium.connect_type import BY_NAME, BY_OID
from walstream.formats.debezium.connect_value import text_of
from walstream.formats.debezium.decode import EnvelopeDecoder
from walstream.formats.debezium.json_text import json_text
from walstream.formats.debezium.pg_type import ELEMENTS, PgType
from walstream.formats.debezium.position import PositionHeaders
from walstream.formats.debezium.types import ConnectTypes
from walstream.op import Kind, ReplicationOp, Table
from walstream.row import OMITTED, UNCHANGED, NotSent

_EXACT: Final = Context(prec=2000)
_EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - as texts without a zone are
_CYCLE: Final = 146_097  # days of 400 years, after which the calendar repeats
_DECIMALS: Final = st.decimals(allow_nan=False, allow_infinity=False).filter(
    lambda number: -300 < number.adjusted() < 300
)
_JAVA: Final = re.compile(r"-?(?:0|[1-9][0-9]*)\.[0-9]+(?:E-?[1-9][0-9]*)?")
OIDS: Final = sorted({*BY_OID, *ELEMENTS, *ELEMENTS.values(), 628, 16500})
_NAMES: Final = ["", *BY_NAME, "hstore", "sparsevec", "pair"]
_CHOICES: Final[dict[str, list[Any]]] = {
    "decimal": ["precise", "string", "double"],
    "time": [
        *("adaptive", "adaptive_time_microseconds", "connect", "isostring"),
        *("microseconds", "nanoseconds"),
    ],
    "interval": ["numeric", "string"],
    "hstore": ["json", "map"],
    "binary": ["bytes", "base64", "base64-url-safe", "hex"],
    "unknown": [False, True],
}
MODES: Final[list[dict[str, Any]]] = [
    {name: choices[number % len(choices)] for name, choices in _CHOICES.items()}
    for number in range(12)
]
"""Options, so that each mode is in one."""
TEXTS: Final = texts | MESSY | st.text('0123456789-+:. {}(),[]"NaBC/te', max_size=24)


def _ignore(_: str) -> None:
    pass


def unscaled(text: str) -> int:
    raw = a2b_base64(text)
    number = int.from_bytes(raw, "big", signed=True)
    fewest = ((number if number >= 0 else ~number).bit_length() >> 3) + 1
    assert len(raw) == fewest
    return number


@given(number=_DECIMALS, scale=st.integers(-5, 40))
def test_a_decimal_is_its_number_in_the_fewest_bytes(
    number: Decimal, scale: int
) -> None:
    exact = number.quantize(Decimal(1).scaleb(-scale), context=_EXACT)
    text = f"{exact or abs(exact):f}"  # there is no -0
    found = unscaled(json.loads(numeric.fixed(scale, _ignore)(text)))
    assert Decimal(found).scaleb(-scale, _EXACT) == exact


@given(number=_DECIMALS)
def test_a_numeric_is_its_number_with_the_fewest_decimals(number: Decimal) -> None:
    found = json.loads(numeric.variable(_ignore)(f"{number:f}"))
    scale, digits = found["scale"], unscaled(found["value"])
    assert Decimal(digits).scaleb(-scale, _EXACT) == number
    assert scale == 0 or digits % 10


@given(number=st.floats())
def test_a_float_is_its_number_as_java_writes_it(number: float) -> None:
    written = float_text.python_float(number)
    if not math.isfinite(number):
        assert json.loads(written) in {"NaN", "Infinity", "-Infinity"}
        return
    assert _JAVA.fullmatch(written)
    found = float(written)
    assert found == number
    assert math.copysign(1, found) == math.copysign(1, number)
    plain = "E" not in written
    assert plain == (number == 0 or 1e-3 <= abs(number) < 1e7)
    back = text_of(json.loads(written), {"type": "double"}) or ""
    assert float(back) == number


@given(
    moment=st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)),  # noqa: DTZ001
    cycles=st.integers(-12, 710),
)
def test_a_timestamp_of_any_year_is_its_microseconds(
    moment: datetime, cycles: int
) -> None:
    """The calendar repeats after 400 years: that far from Python's own."""
    year = moment.year + 400 * cycles
    shown, era = (1 - year, " BC") if year <= 0 else (year, "")
    fraction = f".{moment.microsecond:06}".rstrip("0") if moment.microsecond else ""
    day = f"{shown:04}-{moment:%m-%d}"
    clock = f"{moment:%H:%M:%S}{fraction}"
    micros = (moment - _EPOCH) // timedelta(microseconds=1)
    micros += cycles * _CYCLE * calendar.DAY_US
    assert calendar.micros(f"{day} {clock}{era}") == micros
    assert calendar.micros(f"{day} {clock}+00{era}") == micros
    assert calendar.micros(f"{day} {clock}-01:30{era}") == micros + 5_400_000_000
    assert calendar.days(day + era) == micros // calendar.DAY_US
    written = calendar.iso_moment(micros)
    signs = {"-": year < 0, "+": year > 9999}
    assert signs.get(written[0], True)
    schema = {"name": "io.debezium.time.MicroTimestamp"}
    if abs(micros) < 1 << 63:
        assert text_of(micros, schema) == f"{day} {clock}{era}"
    iso = {"name": "io.debezium.time.IsoTimestamp"}
    assert text_of(written, iso) == f"{day} {clock}{era}"


@given(
    days=st.integers(-100_000, 100_000),
    seconds=st.integers(-86_399, 86_399),
    micros=st.integers(0, 999_999),
)
def test_an_interval_of_days_and_time_is_its_microseconds(
    days: int, seconds: int, micros: int
) -> None:
    sign = "-" if seconds < 0 else "+" if days else ""
    whole = abs(seconds)
    clock = f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"
    text = (
        f"{days} days {sign}{clock}.{micros:06}"
        if days
        else f"{sign}{clock}.{micros:06}"
    )
    exact = days * 86_400_000_000
    part = whole * 1_000_000 + micros
    exact += -part if seconds < 0 else part
    found = int(interval.numeric(_ignore)(text))
    assert abs(found - exact) <= 1 + abs(exact) * 2**-50  # it counts with doubles


@given(items=st.lists(st.none() | texts | MESSY, max_size=5))
def test_an_array_has_its_items_whatever_is_in_them(
    items: list[str | None],
) -> None:
    found = composite_text.array(json_text)(literal(items))
    assert json.loads(found) == items
    assert composite_text.items(composite_text.array_text(items)) == items


@given(value=st.dictionaries(texts | MESSY, st.none() | texts | MESSY, max_size=4))
def test_an_hstore_has_its_pairs(value: dict[str, str | None]) -> None:
    text = composite_text.hstore_text(list(value.items()))
    assert dict(composite_text.pairs(text)) == value


@given(text=texts | MESSY)
def test_a_text_is_json_without_characters_that_jackson_escapes(text: str) -> None:
    written = json_text(text)
    assert json.loads(written) == text
    assert not re.search("[\0-\x1f\U00010000-\U0010ffff]", written)
    for found in re.finditer(r"\\(?:u(....)|.)", written):
        assert found[1] is None or found[1] == found[1].upper()


@given(values=st.lists(texts, min_size=1, max_size=3), numbers=st.integers())
def test_a_key_is_compact_json_of_its_columns(values: list[str], numbers: int) -> None:
    columns = tuple(f"c{index}" for index in range(len(values) + 1))
    table = Table(
        "s", "t", columns, tuple(range(len(columns))), (20, *[25] * len(values))
    )
    options = DebeziumOptions("app")
    encoder = EnvelopeEncoder(table, options, SinkTurn())
    key = DebeziumKey(encoder.columns, options, table.key)
    row = [str(numbers), *values]
    written = key.render(ReplicationOp(Kind.INSERT, table, 5, 0, new=row)) or b""
    found = json.loads(written)
    assert list(found) == list(columns)
    assert list(found.values()) == [numbers, *values]
    fields = (f'"{name}":' for name in columns)
    shown = (str(numbers), *map(json_text, values))
    pairs = ",".join(name + value for name, value in zip(fields, shown, strict=True))
    assert written == f"{{{pairs}}}".encode()


@given(
    oid=st.sampled_from(OIDS),
    name=st.sampled_from(_NAMES),
    modifier=st.sampled_from([-1, 0, 1, 3, 6, 10, 327686, 198658]),
    text=TEXTS,
    mode=st.sampled_from(MODES),
)
def test_any_text_of_any_type_is_json_or_refused(
    oid: int, name: str, modifier: int, text: str, mode: dict[str, Any]
) -> None:
    element = PgType(ELEMENTS[oid], "", modifier) if oid in ELEMENTS else None
    pg = PgType(oid, name, modifier, ("sad", "ok") if oid == 16500 else (), element)
    found = ConnectTypes(DebeziumOptions("app", **mode)).of(pg, _ignore)
    if found is None:
        return
    try:
        written = found.render(text)
    except ValueError:
        return
    value = json.loads(written)
    kind = found.schema.type
    wanted: Any = {
        "boolean": bool, "string": str, "bytes": str, "struct": dict, "map": dict,
        "array": list,
    }.get(kind, (int, float, str))  # fmt: skip
    assert value is None or isinstance(value, wanted)
    if kind in {"int16", "int32", "int64"}:
        assert type(value) is int
    text_of(value, json.loads(found.schema.json()))


_TABLES: Final = st.builds(
    lambda schema, name, columns: Table(
        schema, name, tuple(columns), (0,), tuple([25] * len(columns))
    ),
    names,
    names,
    st.lists(names, min_size=1, max_size=4, unique=True),
)


def _header(op: ReplicationOp) -> dict[str, bytes]:
    ((name, value),) = PositionHeaders(DebeziumOptions("app"), unwrapped=False).of(op)
    assert isinstance(value, bytes)
    return {name: value}


@given(data=st.data(), table=_TABLES, lsn=lsns, seq_id=st.integers(0, 1 << 40))
def test_an_op_comes_back_from_its_envelope(
    data: st.DataObject, table: Table, lsn: int, seq_id: int
) -> None:
    row = st.tuples(
        texts, *[st.none() | texts | st.just(UNCHANGED) for _ in table.columns[1:]]
    ).map(list)
    new = data.draw(row)
    kind = data.draw(st.sampled_from([Kind.INSERT, Kind.UPDATE]))
    absent = any(isinstance(value, NotSent) for value in new)
    op = ReplicationOp(kind, table, lsn, seq_id, None, new, absent, False, 7, 5)
    options = DebeziumOptions("app", schemas=data.draw(st.booleans()))
    encoder = EnvelopeEncoder(table, options, SinkTurn())
    key = DebeziumKey(encoder.columns, options, table.key).render(op)
    found = EnvelopeDecoder().read(encoder.encode(op), key, _header(op))
    assert found is not None
    assert found.exact
    back = found.op
    assert (back.kind, back.lsn, back.seq_id) == (kind, lsn, seq_id)
    assert back.new == [OMITTED if value is UNCHANGED else value for value in new]
    assert back.table.full_name == table.full_name
    assert (back.table.columns, back.table.key) == (table.columns, table.key)
