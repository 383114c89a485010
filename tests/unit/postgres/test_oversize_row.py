"""Which errors of a stream would come again for ever, in any language."""

from types import SimpleNamespace
from typing import Any, cast

import psycopg
import pytest

from walstream.errors import HistoryError
from walstream.postgres.oversize_row import is_unsendable, stop


def failed(state: str, text: str, file: str | None = None) -> psycopg.Error:
    diagnostic = SimpleNamespace(message_primary=text, source_file=file)
    error: Any = SimpleNamespace(sqlstate=state, diag=diagnostic)
    return cast("psycopg.Error", error)


@pytest.mark.parametrize(
    ("state", "text", "file", "for_ever"),
    [
        ("XX000", "invalid memory alloc request size 1073741827", None, True),
        ("XX000", "in whatever words", "mcxt.c", True),
        ("54000", "Speicher aufgebraucht", "stringinfo.c", True),
        ("54000", "string buffer exceeds maximum allowed length", None, True),
        ("53200", "out of memory", "mcxt.c", False),  # it may have some later
        ("XX000", "could not find block", "relcache.c", False),
        ("57P01", "terminating connection", "postgres.c", False),
    ],
)
def test_only_what_no_later_try_can_send_is_for_ever(
    state: str, text: str, file: str | None, for_ever: bool
) -> None:
    assert is_unsendable(failed(state, text, file)) is for_ever


def test_the_stop_names_where_and_what_to_do() -> None:
    error = stop(failed("54000", "too long\nmore"), 0x1_0000_00AB)
    assert isinstance(error, HistoryError)
    assert "after 1/AB" in str(error.args[0])
    assert "too long (54000)" in str(error.args[0])
    assert "publication" in error.hint
    assert error.repair.command.startswith("walstream positions reset")
