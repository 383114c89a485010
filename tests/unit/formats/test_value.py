"""PostgreSQL's texts as JSON, by type; what has no form of its own is its text."""

import json

import orjson
import pytest

from walstream.formats.column_type import ARRAY
from walstream.formats.value import renderer

BOOL, INT8, INT4, JSON, FLOAT8, DATE, TIMESTAMP, TIMESTAMPTZ, NUMERIC, JSONB = (
    *(16, 20, 23, 114, 701, 1082, 1114, 1184, 1700, 3802),
)
BOOLS, INT4S, TEXTS, JSONBS, BOXES, TIMESTAMPTZS, FLOAT8S, NUMERICS = (
    *(1000, 1007, 1009, 3807, 1020, 1185, 1022, 1231),
)
ENUM = 16400


@pytest.mark.parametrize(
    ("oid", "text", "written"),
    [
        (BOOL, "t", "true"),
        (BOOL, "f", "false"),
        (21, "-32768", "-32768"),
        (INT4, "0", "0"),
        (INT8, "9007199254740993", "9007199254740993"),
        (INT8, "-9223372036854775808", "-9223372036854775808"),
        (FLOAT8, "0.1", "0.1"),
        (FLOAT8, "-0", "-0"),
        (FLOAT8, "5e-324", "5e-324"),
        (FLOAT8, "1.7976931348623157e+308", "1.7976931348623157e+308"),
        (700, "1e-45", "1e-45"),
        (FLOAT8, "NaN", '"NaN"'),
        (FLOAT8, "Infinity", '"Infinity"'),
        (FLOAT8, "-Infinity", '"-Infinity"'),
        (NUMERIC, "12.50", '"12.50"'),
        (NUMERIC, "NaN", '"NaN"'),
        (DATE, "2020-01-02", '"2020-01-02T00:00:00Z"'),
        (DATE, "infinity", '"infinity"'),
        (DATE, "0044-03-15 BC", '"0044-03-15 BC"'),
        (DATE, "10000-01-01", '"10000-01-01"'),
        (TIMESTAMP, "2020-01-02 03:04:05.678", '"2020-01-02T03:04:05.678Z"'),
        (TIMESTAMP, "0001-01-01 00:00:00", '"0001-01-01T00:00:00Z"'),
        (TIMESTAMPTZ, "2020-01-02 03:04:05+00", '"2020-01-02T03:04:05Z"'),
        (TIMESTAMPTZ, "-infinity", '"-infinity"'),
        (TIMESTAMPTZ, "0001-01-01 00:00:00+00 BC", '"0001-01-01 00:00:00+00 BC"'),
        (TIMESTAMP, "294276-12-31 23:59:59", '"294276-12-31 23:59:59"'),
        (869, "192.168.0.1/24", '"192.168.0.1/24"'),
        (17, "\\x00ff", '"\\\\x00ff"'),
        (790, "-$0.01", '"-$0.01"'),
        (1560, "101", '"101"'),
        (ENUM, 'qu"ote', '"qu\\"ote"'),
        (0, "x", '"x"'),
    ],
)
def test_a_value_is_written_by_its_type(oid: int, text: str, written: str) -> None:
    assert renderer(oid)(text) == written.encode()


@pytest.mark.parametrize(
    "document",
    [
        '{"b": 1,  "a": [null, 1e5, "\\u00e9"], "b": 2}',
        "null",
        '"x"',
        "12.50",
        "123456789012345678901234567890",
        "1e400",
        "-1e-400",
        '{"n": 1e400, "t": "a\\\\\\"1e5"}',
        "9" * 5000,
        '"\\ud800"',
        '"\\u0000"',
        "[" * 100 + "]" * 100,
    ],
)
def test_a_document_stands_as_it_is(document: str) -> None:
    assert renderer(JSON)(document) == document.encode()
    assert renderer(JSONB)(document) == document.encode()


def test_a_document_of_several_lines_becomes_one() -> None:
    assert renderer(JSON)('{"a":\r\n  "b\\n"}') == b'{"a":    "b\\n"}'


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "1]", "1],[2", '1,"x":2', "1.5.5", "01", "-", "NaN", "1 2"),
        *('"a""b"', '"a\tb"', "nul1l", '"\\x"', "{1:2}", "1e400.5", "1e400]"),
        "[" * 101 + "]" * 101,
    ],
)
def test_what_is_no_document_is_a_text(text: str) -> None:
    assert renderer(JSON)(text) == orjson.dumps(text)


@pytest.mark.parametrize(
    ("oid", "text", "items"),
    [
        (INT4S, "{}", []),
        (INT4S, "{1,NULL,-3}", [1, None, -3]),
        (INT4S, "{{1,2},{3,4}}", [[1, 2], [3, 4]]),
        (INT4S, "[0:1]={5,6}", [5, 6]),
        (INT4S, "[-1:0][2:3]={{1,2},{3,4}}", [[1, 2], [3, 4]]),
        (BOOLS, "{t,f,NULL}", [True, False, None]),
        (FLOAT8S, "{0.1,NaN,-Infinity}", [0.1, "NaN", "-Infinity"]),
        (NUMERICS, "{1.10,NaN}", ["1.10", "NaN"]),
        (
            TEXTS,
            '{"",NULL,"NULL","a b","c\\"d","e\\\\f","{g}","h,i",t}',
            ["", None, "NULL", "a b", 'c"d', "e\\f", "{g}", "h,i", "t"],
        ),
        (TEXTS, '{"a\nb","1,\\\\\\"}"}', ["a\nb", '1,\\"}']),
        (
            JSONBS,
            '{"{\\"a\\": [1, 1.50]}",null,NULL,5}',
            [{"a": [1, 1.5]}, None, None, 5],
        ),
        (BOXES, "{(2,2),(1,0.1);NULL}", ["(2,2),(1,0.1)", None]),
        (
            TIMESTAMPTZS,
            '{"2024-07-04 23:02:03+00",infinity}',
            ["2024-07-04T23:02:03Z", "infinity"],
        ),
        (1001, '{"\\\\x00ff"}', ["\\x00ff"]),
        (ARRAY, '{sad,"so so","qu\\"ote"}', ["sad", "so so", 'qu"ote']),
    ],
)
def test_an_array_is_an_array(oid: int, text: str, items: list[object]) -> None:
    assert json.loads(renderer(oid)(text)) == items


def test_numbers_in_an_array_stay_exact() -> None:
    assert renderer(1016)("{9007199254740993}") == b"[9007199254740993]"
    assert renderer(JSONBS)('{"{\\"a\\": 1e400}"}') == b'[{"a": 1e400}]'


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "{", "}", "{1", "{1}}", "{1},{2}", "{,}", "{1,}", '{"a}', "[0:1]=1"),
        *('{"a"b}', "{{1},2", "[1,5)", "{1}{2}", "[0:0]={1}]"),
    ],
)
def test_what_is_no_array_is_a_text(text: str) -> None:
    assert renderer(TEXTS)(text) == orjson.dumps(text)


def test_only_what_stands_in_front_of_an_array_is_its_bounds() -> None:
    texts = renderer(1009)
    assert texts('{"x[7:0]={a,b}",c}') == b'["x[7:0]={a,b}","c"]'
    assert texts("[0:1]={a,b}") == b'["a","b"]'
