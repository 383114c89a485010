"""The placeholder in each type's form."""

from uuid import UUID

from walstream.formats.debezium.unavailable import Unavailable

_FOUND = Unavailable("__debezium_unavailable_value")


def of(element: int, *, as_bytes: bool = True, as_days: bool = True) -> str | None:
    return _FOUND.array(element, as_bytes=as_bytes, as_days=as_days)


def test_texts_and_bytes_have_a_form() -> None:
    assert _FOUND.text == '"__debezium_unavailable_value"'
    assert _FOUND.base64 == '"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="'
    assert of(25) == f"[{_FOUND.text}]"
    assert of(17) == f"[{_FOUND.base64}]"
    assert of(17, as_bytes=False) == f"[{_FOUND.text}]"


def test_numbers_are_its_bytes() -> None:
    numbers = f"[{','.join(str(one) for one in b'__debezium_unavailable_value')}]"
    assert of(23) == of(20) == of(1082) == numbers
    assert Unavailable("é").array(23, as_bytes=True, as_days=True) == "[-61,-87]"


def test_dates_have_one_only_where_they_are_numbers() -> None:
    assert of(1082, as_days=False) is None


def test_a_uuid_is_that_of_its_bytes() -> None:
    """Java's nameUUIDFromBytes: an MD5 without a namespace."""
    found = of(2950) or ""
    assert UUID(found[2:-2]).version == 3
    assert Unavailable("hello").array(2950, as_bytes=True, as_days=True) == (
        '["5d41402a-bc4b-3a76-b971-9d911017c592"]'
    )


def test_other_arrays_have_none() -> None:
    assert [of(oid) for oid in (1700, 1114, 16, 701, 869)] == [None] * 5


def test_each_form_is_known_again() -> None:
    held = ["__debezium_unavailable_value"]
    for value in (held[0], held, {held[0]: held[0]}, list(held[0].encode())):
        assert _FOUND.is_one(value)
    for other in ("x", ["x"], {"a": "b"}, [1], 5, None, True):
        assert not _FOUND.is_one(other)
