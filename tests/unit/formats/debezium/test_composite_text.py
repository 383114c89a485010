"""Arrays and hstore, taken apart and put together."""

import pytest

from walstream.formats.debezium import composite_text
from walstream.formats.debezium.json_text import json_text


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("{}", []),
        ("{1,NULL,3}", ["1", None, "3"]),
        ('{"a b",NULL,"c\\"d"}', ["a b", None, 'c"d']),
        ('{"NULL","","\\\\"}', ["NULL", "", "\\"]),
        ("{Null,N}", ["Null", "N"]),
        ("{{1,2},{3,4}}", ["1", "2", "3", "4"]),
        ("[0:1]={7,8}", ["7", "8"]),
        ("[1:1][-2:-1]={{7,8}}", ["7", "8"]),
        ('{"{1,2}","a,b","}"}', ["{1,2}", "a,b", "}"]),
        ("{{},{}}", []),
    ],
)
def test_an_array_is_taken_apart(text: str, items: list[str | None]) -> None:
    assert composite_text.items(text) == items


def test_boxes_stand_between_semicolons() -> None:
    assert composite_text.items("{(3,4),(1,2);(1,1),(0,0)}", ";") == [
        "(3,4),(1,2)",
        "(1,1),(0,0)",
    ]


def test_an_array_is_written_item_by_item() -> None:
    render = composite_text.array(json_text)
    assert render('{"a b",NULL,"c\\"d"}') == '["a b",null,"c\\"d"]'


@pytest.mark.parametrize(
    "text", ["", "1,2", "{1", "{{1}", '{"a}', "{1}}", '{"a"b"}', "}{"]
)
def test_what_is_no_array_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not an array"):
        composite_text.items(text)


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("", []),
        ('"a"=>"1", "b"=>NULL', [("a", "1"), ("b", None)]),
        ('"c d"=>"x\\"y", "\\\\"=>""', [("c d", 'x"y'), ("\\", "")]),
        ('"a"=>"NULL, "', [("a", "NULL, ")]),
    ],
)
def test_an_hstore_is_taken_apart_and_put_together(
    text: str, pairs: list[tuple[str, str | None]]
) -> None:
    assert composite_text.pairs(text) == pairs
    assert composite_text.hstore_text(pairs) == text


@pytest.mark.parametrize("text", ["a=>1", '"a"', '"a"=>"1" "b"=>"2"', '"a"=>', "{}"])
def test_what_is_no_hstore_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not an hstore"):
        composite_text.pairs(text)


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ([], "{}"),
        (["1", None, "x"], "{1,NULL,x}"),
        (["null", "", "a b", 'q"\\'], '{"null","","a b","q\\"\\\\"}'),
    ],
)
def test_an_array_is_put_together(items: list[str | None], text: str) -> None:
    assert composite_text.array_text(items) == text
    assert composite_text.items(text) == items


def test_only_what_stands_in_front_of_an_array_is_its_bounds() -> None:
    assert composite_text.items('{"x[7:0]={a,b}",c}') == ["x[7:0]={a,b}", "c"]
    assert composite_text.items("[0:1]={a,b}") == ["a", "b"]
