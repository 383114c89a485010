"""Which forms of a value a column takes; test_mirror_debezium.py asks real servers."""

import pytest

from consumer.mirror.envelope_fit import ColumnType, fit, forms, unit_fit
from consumer.registry import NO_NULL
from tests.support.loads.envelope import envelope, read, record, with_schema

TIME = "io.debezium.time."


def column(
    kind: str, *, modifier: int = -1, dimensions: int = 0, element: str | None = None
) -> ColumnType:
    return ColumnType(kind, modifier, dimensions, kind, element)


def test_forms_are_the_names_of_schemas_or_their_types() -> None:
    items = {"type": "array", "items": {"type": "int32", "name": f"{TIME}Date"}}
    vector = {"type": "array", "name": "V", "items": {"type": "float"}}
    columns = {"id": "int32", "d": f"int32 {TIME}Date", "a": items, "v": vector}
    found = envelope("c", after=dict.fromkeys(columns))
    told = forms(read(record(with_schema(found, columns))))
    assert told == ("int32", f"{TIME}Date", f"array of {TIME}Date", "V")
    assert forms(read(record(found))) is None


@pytest.mark.parametrize(
    ("kind", "form", "fits"),
    [
        (column("int4"), "int32", True),
        (column("int4"), "boolean", False),
        (column("numeric"), "string", True),
        (column("numeric"), "double", False),
        (column("timestamp", modifier=3), f"{TIME}Timestamp", True),
        (column("timestamp", modifier=4), f"{TIME}Timestamp", False),
        (column("timestamp"), f"{TIME}Timestamp", False),
        (column("timestamp"), f"{TIME}NanoTimestamp", False),
        (column("time"), f"{TIME}NanoTime", True),
        (column("bit", modifier=160), "io.debezium.data.Bits", True),
        (column("bit", modifier=161), "io.debezium.data.Bits", False),
        (column("array", element="int4", dimensions=1), "array of int32", True),
        (column("array", element="int4", dimensions=2), "array of int32", False),
        (column("array", element="bool"), "array of boolean", False),
        (column("array"), "array of string", False),
        (column("other"), "bytes", False),
        (column("int4"), None, True),
        (column("numeric"), None, False),
        (column("array", element="date"), None, False),
        (column("array", element="text"), None, True),
        (column("array", element="bytea"), None, False),
    ],
)
def test_a_form_that_loses_something_does_not_fit(
    kind: ColumnType, form: str | None, fits: bool
) -> None:
    made = fit({"v": kind}, ("v",), None if form is None else (form,))
    assert (made.misfit is None) is fits
    if made.misfit is not None:
        assert "column v" in made.misfit.what
        assert made.misfit.hint


def test_what_tells_itself_is_converted() -> None:
    types = {"b": column("bit", modifier=1), "d": column("date"), "n": column("int4")}
    told = fit(types, ("b", "n"), ("boolean", "int32")).conversions
    assert {name: told[name]("t") for name in told} == {"b": "1"}
    bare = fit({"d": types["d"], "z": column("timestamptz")}, ("d", "z"), None)
    assert bare.conversions["d"]("-1") == "1969-12-31"
    assert bare.conversions["d"]("2020-02-29Z") == "2020-02-29"
    moment = bare.conversions["z"]
    assert moment("-0043-03-15T01:02:03.500000Z") == "0044-03-15 01:02:03.5+00 BC"
    assert moment("infinity") == "infinity"


def test_an_empty_value_is_no_null() -> None:
    """As ProtobufConverter writes one without optional.for.nullables."""
    told = {"type": "int32", "optional": False, NO_NULL: True}
    message = {**told, "optional": True}
    found = envelope("c", after={"v": 0, "w": None})
    op = read(record(with_schema(found, {"v": told, "w": message})))
    written = forms(op)
    assert written is not None
    assert written[1] == "int32"
    types = {"v": column("int4"), "w": column("int4")}
    made = fit(types, ("v", "w"), written)
    assert made.misfit is not None
    assert "column v" in made.misfit.what
    assert "optional.for.nullables" in made.misfit.hint
    types["v"] = types["v"]._replace(nullable=False)
    assert fit(types, ("v", "w"), written).misfit is None


@pytest.mark.parametrize(
    ("kind", "fits"),
    [
        (column("int8"), True),
        (column("numeric"), True),
        (column("array", element="int4"), True),
        *((column(one), False) for one in ("date", "time", "timestamp", "timestamptz")),
        (column("array", element="date", dimensions=2), False),
    ],
)
def test_a_number_without_a_unit_is_no_time(kind: ColumnType, fits: bool) -> None:
    made = unit_fit({"v": kind}, ("made", "v"))
    assert (made.misfit is None) is fits
    if made.misfit is not None:
        assert "column v" in made.misfit.what
        assert made.misfit.hint


@pytest.mark.parametrize(
    ("kind", "form", "printed"),
    [
        ("text", "string", True),
        ("numeric", "string", False),
        ("numeric", "org.apache.kafka.connect.data.Decimal", True),
        ("float4", "float", False),
        ("interval", f"{TIME}Interval", False),
    ],
)
def test_it_is_told_whose_texts_are_postgresqls(
    kind: str, form: str, printed: bool
) -> None:
    assert fit({"v": column(kind)}, ("v",), (form,)).printed is printed


def test_only_a_column_without_any_form_is_missed() -> None:
    types = {"new": column("text"), "box": column("box")}
    assert fit({"new": types["new"]}, (), ()).misfit is None
    made = fit(types, ("new",), ("string",))
    assert made.misfit is not None
    assert "column box" in made.misfit.what
    # a generated column is none of the target's own
    assert fit({"new": types["new"]}, ("new", "made"), ("string", "x")).misfit is None
