r"""Text that is none of its encoding: a byte that is wrong stands as \xNN.

Drivers refuse it, so a session is made tolerant when one of them has, and then reads
again: reading all text so would cost too much.
"""

import codecs
from typing import Any, Final

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from walstream.sources.sql.database import psycopg_text

_ERRORS: Final = "backslashreplace"
_CODEC: Final = "walstream_utf8"
# character_not_in_repertoire, untranslatable_character
_POSTGRES_STATES: Final = frozenset({"22021", "22P05"})
_SQLITE_WORDS: Final = "Could not decode to UTF-8"


def is_undecodable(error: BaseException) -> bool:
    """Whether a driver met such text."""
    if isinstance(error, DBAPIError) and error.orig is not None:
        error = error.orig
    state = getattr(error, "sqlstate", None)
    return (
        isinstance(error, UnicodeDecodeError)
        or _SQLITE_WORDS in str(error)
        or state in _POSTGRES_STATES
    )


def tolerate(connection: Connection) -> bool:
    """Let the session read such text from now on; False if it did, or cannot."""
    raw: Any = connection.connection.driver_connection
    match connection.dialect.driver:
        case "pysqlite" if raw.text_factory is not text:
            raw.text_factory = text
        case "pymysql" if raw.encoding != _CODEC:
            raw.encoding = _CODEC
        case "psycopg":
            return psycopg_text.tolerate(raw)
        case _:
            return False
    return True


def text(data: bytes) -> str:
    """Decode, whatever it is."""
    return str(data, "utf-8", _ERRORS)


def _find(name: str) -> codecs.CodecInfo | None:
    if name != _CODEC:
        return None
    return codecs.CodecInfo(
        lambda given, errors="strict": codecs.utf_8_encode(given, errors),
        lambda data, errors=_ERRORS: codecs.utf_8_decode(data, _ERRORS, True),  # noqa: ARG005, FBT003 - a codec's signature
        name=_CODEC,
    )


codecs.register(_find)
