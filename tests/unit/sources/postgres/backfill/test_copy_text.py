"""COPY text, against what PostgreSQL's manual says of it."""

import pytest

from walstream.sources.postgres.backfill.copy_text import rows


@pytest.mark.parametrize(
    ("line", "values"),
    [
        (b"1\ta\n", ["1", "a"]),
        (b"\t\n", ["", ""]),
        (b"\\N\t\\\\N\n", [None, "\\N"]),
        (b"\\b\\f\\n\\r\\t\\v\t\\\\\n", ["\b\f\n\r\t\v", "\\"]),
        (b"a\\\\nb\t\\\\\\\\\n", ["a\\nb", "\\\\"]),
        (b"\r\x0b\x0c\x1c\xc2\x85\t\xe2\x80\xa8\n", ["\r\x0b\x0c\x1c\x85", "\u2028"]),
    ],
)
def test_a_line_is_read_as_it_was_written(
    line: bytes, values: list[str | None]
) -> None:
    assert rows(line, 2) == [values]
    assert rows(b"x\ty\n" + line + b"\\N\tz\n", 2) == [
        ["x", "y"],
        values,
        [None, "z"],
    ]


def test_rows_of_a_table_without_columns_are_empty() -> None:
    assert rows(b"\n\n", 0) == [[], []]


def test_one_empty_column_is_a_value() -> None:
    assert rows(b"\n\\N\n", 1) == [[""], [None]]
