"""Types of PostgreSQL in psycopg: no stored value is ever refused.

What Python's types cannot hold comes as PostgreSQL's text: dates before Christ or after
9999, infinity, 24:00, months of an interval. So does what has no plain type: ranges,
addresses. JSON of rows stays a text, which is parsed later.
"""

import re
from typing import Any, Final

_DATED: Final = ("date", "time", "timetz", "timestamp", "timestamptz", "interval")
_NO_FIXED_LENGTH: Final = re.compile(rb"mon|year")
_JSON: Final = ("json", "jsonb")
_ADDRESSES: Final = ("inet", "cidr")
_RANGES: Final = ("int4", "int8", "num", "date", "ts", "tstz")
_STRINGS: Final = ("text", "varchar", "bpchar", "name", "xml", *_JSON)
_UTF8: Final = "utf-8"
_UNCHECKED: Final = "SQL_ASCII"


def register(connection: Any, hstore: tuple[int, int] | None) -> None:
    """Teach a new connection; `hstore` has the oids of that type and its array's."""
    from psycopg.types import TypeInfo  # noqa: PLC0415 - one driver of many
    from psycopg.types.hstore import register_hstore  # noqa: PLC0415
    from psycopg.types.string import TextLoader  # noqa: PLC0415

    adapters = connection.adapters
    for name in _DATED:
        refused = _NO_FIXED_LENGTH if name == "interval" else None
        adapters.register_loader(name, _total(_loader_of(adapters, name), refused))
    ranges = [f"{one}{kind}" for one in _RANGES for kind in ("range", "multirange")]
    for name in (*_ADDRESSES, *ranges):
        adapters.register_loader(name, TextLoader)
    if hstore is not None:
        register_hstore(TypeInfo("hstore", *hstore), connection)
    connection.server_cursor_factory = _quiet_cursor()


def let_json_be(cursor: Any) -> None:
    """Leave JSON a text in what this cursor reads.

    Not on the connection: SQLAlchemy reads catalogs by it.
    """
    text = cursor.adapters.get_loader(cursor.adapters.types["text"].oid, _text_format())
    for name in _JSON:
        cursor.adapters.register_loader(name, text)


def tolerate(connection: Any) -> bool:
    """Take texts as they are stored; False if that was done before.

    The server refuses to send what is none of the encoding that it is sent in.
    """
    if connection.info.encoding != _UTF8:
        return False
    stored = connection.info.parameter_status("server_encoding")
    sent = "LATIN1" if stored == _UNCHECKED else stored  # every byte is one of it
    connection.execute(
        "SELECT pg_catalog.set_config('client_encoding', %s, false)", [sent]
    )
    connection.commit()
    codec = _UTF8 if stored == _UNCHECKED else connection.info.encoding
    for name in _STRINGS:
        connection.adapters.register_loader(name, _tolerant(codec))
    return True


def _text_format() -> Any:
    from psycopg.pq import Format  # noqa: PLC0415 - likewise

    return Format.TEXT


def _loader_of(adapters: Any, name: str) -> Any:
    return adapters.get_loader(adapters.types[name].oid, _text_format())


def _total(given: Any, refused: re.Pattern[bytes] | None = None) -> Any:
    """Make a loader that falls back to the text, and takes what is refused for one."""
    from psycopg.adapt import Loader  # noqa: PLC0415 - likewise

    class Total(Loader):
        def __init__(self, oid: int, context: Any = None) -> None:
            super().__init__(oid, context)
            self._load = given(oid, context).load

        def load(self, data: Any) -> Any:
            if refused is not None and refused.search(data):
                return bytes(data).decode()
            try:
                return self._load(data)
            except Exception:  # noqa: BLE001 - whatever it is that it cannot hold
                return bytes(data).decode()

    return Total


def _tolerant(codec: str) -> Any:
    from psycopg.adapt import Loader  # noqa: PLC0415 - likewise

    class Tolerant(Loader):
        def load(self, data: Any) -> str:
            return str(bytes(data), codec, "backslashreplace")

    return Tolerant


def _quiet_cursor() -> Any:
    """Make a cursor that says nothing of being left open.

    SQLAlchemy leaves it so where the server is gone.
    """
    from psycopg import ServerCursor  # noqa: PLC0415 - likewise

    class QuietCursor(ServerCursor[Any]):
        def __del__(self, *_: object) -> None:
            pass

    return QuietCursor
