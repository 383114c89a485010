"""A type that is not built in is known by the names that the server gives it."""

import pytest

from walstream.formats.column_type import ARRAY, written_as


@pytest.mark.parametrize(
    ("oid", "namespace", "name", "expected"),
    [
        (20, "", "", 20),
        (1016, "", "", 1016),
        (9999, "public", "_t", 9999),
        (16400, "pg_catalog", "int8", 20),
        (16400, "pg_catalog", "_int8", 1016),
        (16400, "pg_catalog", "_box", 1020),
        (16400, "pg_catalog", "_text", ARRAY),
        (16400, "pg_catalog", "varchar", 16400),
        (16400, "public", "mood", 16400),
        (16400, "public", "_mood", ARRAY),
        (16400, "public", "int8", 16400),
        (16400, "public", "_int8", ARRAY),
        (16400, "", "", 16400),
    ],
)
def test_texts_are_known_by_a_built_in_type(
    oid: int, namespace: str, name: str, expected: int
) -> None:
    assert written_as(oid, namespace, name) == expected
