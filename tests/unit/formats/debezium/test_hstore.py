"""hstore as a document and as a map."""

import json

from walstream.formats.debezium import hstore

TEXT = '"a"=>"1", "b"=>NULL, "c d"=>"x\\"y\x1f"'


def test_as_a_map_it_is_an_object() -> None:
    written = hstore.as_map(TEXT)
    assert written == '{"a":"1","b":null,"c d":"x\\"y\\u001F"}'


def test_as_json_it_is_that_object_in_a_text() -> None:
    assert json.loads(hstore.as_json(TEXT)) == '{"a":"1","b":null,"c d":"x\\"y\\u001F"}'
    assert hstore.as_json("") == '"{}"'


def test_in_that_text_characters_are_whole() -> None:
    face = "\U0001f600"
    found = json.loads(hstore.as_json(f'"{face}"=>"{face}"'))
    assert found == f'{{"{face}":"{face}"}}'
