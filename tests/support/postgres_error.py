"""Errors as a PostgreSQL server sends them, for tests without one."""

from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.errors import error_from_result
from psycopg.pq import DiagnosticField, ExecStatus


def failed_result(state: str, words: str, file: str = "") -> Any:
    """Return the result that libpq gives of an error."""
    fields = {
        DiagnosticField.SQLSTATE: state,
        DiagnosticField.MESSAGE_PRIMARY: words,
        DiagnosticField.SOURCE_FILE: file,
    }
    return SimpleNamespace(
        error_message=words.encode(),
        error_field=lambda field: fields.get(field, "").encode() or None,
        get_error_message=lambda _="utf-8": words,
        status=ExecStatus.FATAL_ERROR,
    )


def server_error(state: str, words: str, file: str = "") -> psycopg.Error:
    """Return psycopg's error of it; `file` is that of the server's source."""
    return error_from_result(failed_result(state, words, file))
