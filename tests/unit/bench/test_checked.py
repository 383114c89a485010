"""A change reads the same from the server, from walstream and from Debezium."""

import orjson
import pytest

from bench.checked import (
    Sum,
    Unlike,
    new_of,
    read_envelope,
    read_event,
    read_op,
    read_tungsten,
    read_unwrapped,
)

_ROW = "7\t8\tsome text\t2026-01-01 00:00:08.123457+00\t10.00\tname 8"
_TEXTS = _ROW.replace("\t", '","')
_UNWRAPPED = (
    b'{"id":7,"a":8,"note":"some text","at":"2026-01-01T00:00:08.123457Z",'
    b'"amount":"10.00","name":"name 8"}'
)


def op(body: str) -> bytes:
    return f'{{"table_name":"t","lsn":1,"seq_id":5,"op":{body}}}'.encode()


def test_walstreams_changes_are_the_servers_lines() -> None:
    row = f'["{_TEXTS}"]'
    key, name = b'["7"]', (1, 5)
    assert read_op(key, op(f'{{"Insert":{row}}}')) == ("7", 8, f"I\t{_ROW}", name)
    found = read_op(key, op(f'{{"Update":[{row},{row}]}}'))
    assert found == ("7", 8, f"U\t{_ROW}\t{_ROW}", name)
    found = read_op(key, op(f'{{"Update":[null,{row}]}}'))
    assert found == ("7", 8, f"U\t{_ROW}", name)
    assert read_op(key, op('{"Delete":["7",null]}')) == ("7", None, "D\t7", name)


def test_unwrapped_rows_are_the_new_rows_of_the_servers_lines() -> None:
    assert read_unwrapped(b'{"id":7}', _UNWRAPPED)[:3] == ("7", 8, _ROW)
    assert new_of(f"I\t{_ROW}") == new_of(f"U\t{_ROW}") == _ROW
    assert new_of(f"U\t0{_ROW}\t{_ROW}") == _ROW


def test_an_envelope_is_read_as_its_new_row() -> None:
    envelope = b'{"before":null,"after":' + _UNWRAPPED + b',"op":"c"}'
    assert read_envelope(b'{"id":7}', envelope)[:3] == ("7", 8, _ROW)
    with pytest.raises(Unlike, match="has key"):
        read_envelope(b'{"id":8}', envelope)
    gone = b'{"before":{"id":7},"after":null,"op":"d"}'
    assert read_envelope(b'{"id":7}', gone)[:3] == ("7", None, "D\t7")


def test_an_event_is_read_as_its_row() -> None:
    event = b'{"Action":"insert","Columns":' + _UNWRAPPED + b"}"
    assert read_event(b'["7"]', event)[:3] == ("7", 8, _ROW)
    with pytest.raises(Unlike, match="has key"):
        read_event(b'["8"]', event)
    gone = b'{"Action":"delete","Columns":{"id":7,"a":null}}'
    assert read_event(b'["7"]', gone)[:3] == ("7", None, "D\t7")


def test_tungstens_row_is_the_servers_line() -> None:
    names = ("id", "a", "note", "at", "amount", "name")
    row = orjson.dumps(dict(zip(names, _ROW.split("\t"), strict=True)))
    record = b'{"record":' + row + b',"_optype":"INSERT"}'
    assert read_tungsten(b'["7"]', record)[:3] == ("7", 8, _ROW)
    with pytest.raises(Unlike, match="has key"):
        read_tungsten(b'["8"]', record)
    gone = b'{"record":{"id":"7"},"_optype":"DELETE"}'
    assert read_tungsten(b'["7"]', gone)[:3] == ("7", None, "D\t7")


def test_a_delete_is_no_value_or_null() -> None:
    for value in (None, b"null"):
        assert read_unwrapped(b'{"id":7}', value)[:3] == ("7", None, "D\t7")
    assert new_of("D\t7") == "D\t7"


def test_a_key_of_another_row_is_seen() -> None:
    with pytest.raises(Unlike, match="has key"):
        read_op(b'["8"]', op(f'{{"Insert":["{_TEXTS}"]}}'))
    with pytest.raises(Unlike, match="has key"):
        read_unwrapped(b'{"id":8}', _UNWRAPPED)


def test_a_sum_knows_no_order_and_sees_what_is_lost_or_twice() -> None:
    def summed(*blocks: list[str]) -> Sum:
        found = Sum()
        for block in blocks:
            found.add(block)
        return found

    assert summed(["a", "b"], ["c"]) == summed(["c", "a"], ["b"])
    assert summed(["a", "b"]) != summed(["a", "a"])
    assert summed(["a"]) != summed(["a", "a"])
