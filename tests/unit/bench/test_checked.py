"""A change reads the same from the server, from walstream and from Debezium."""

from bench.checked import Sum, new_of, read_op, read_unwrapped

_ROW = "7\t8\tsome text\t2026-01-01 00:00:08.123457+00\t10.00\tname 8"
_TEXTS = _ROW.replace("\t", '","')


def op(body: str) -> bytes:
    return f'{{"table_name":"t","lsn":1,"seq_id":0,"op":{body}}}'.encode()


def test_walstreams_changes_are_the_servers_lines() -> None:
    row = f'["{_TEXTS}"]'
    assert read_op(None, op(f'{{"Insert":{row}}}')) == ("7", 8, f"I\t{_ROW}")
    found = read_op(None, op(f'{{"Update":[{row},{row}]}}'))
    assert found == ("7", 8, f"U\t{_ROW}\t{_ROW}")
    assert read_op(None, op(f'{{"Update":[null,{row}]}}')) == ("7", 8, f"U\t{_ROW}")
    assert read_op(None, op('{"Delete":["7",null]}')) == ("7", None, "D\t7")


def test_unwrapped_rows_are_the_new_rows_of_the_servers_lines() -> None:
    value = (
        b'{"id":7,"a":8,"note":"some text","at":"2026-01-01T00:00:08.123457Z",'
        b'"amount":"10.00","name":"name 8"}'
    )
    assert read_unwrapped(None, value) == ("7", 8, _ROW)
    assert new_of(f"I\t{_ROW}") == new_of(f"U\t{_ROW}") == _ROW
    assert new_of(f"U\t0{_ROW}\t{_ROW}") == _ROW


def test_a_delete_is_no_value_or_null() -> None:
    for value in (None, b"null"):
        assert read_unwrapped(b'{"id":7}', value) == ("7", None, "D\t7")
    assert new_of("D\t7") == "D\t7"


def test_a_sum_knows_no_order_and_sees_what_is_lost_or_twice() -> None:
    def summed(*blocks: list[str]) -> Sum:
        found = Sum()
        for block in blocks:
            found.add(block)
        return found

    assert summed(["a", "b"], ["c"]) == summed(["c", "a"], ["b"])
    assert summed(["a", "b"]) != summed(["a", "a"])
    assert summed(["a"]) != summed(["a", "a"])
