"""Types of PostgreSQL in psycopg2, if that driver is chosen.

As psycopg_text has it; but JSON is parsed at once, and hardly counts for a page's size.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

_Cast = Callable[[str | None, Any], Any]
_ARRAYS: Final[Mapping[str, tuple[int, int]]] = {  # oids in pg_type: type, its array
    "DATE": (1082, 1182),
    "TIME": (1083, 1183),
    "DATETIME": (1114, 1115),
    "DATETIMETZ": (1184, 1185),
    "TIMETZ": (1266, 1270),
    "INTERVAL": (1186, 1187),
    "JSON": (114, 199),
    "JSONB": (3802, 3807),
}
_RANGES: Final = (3904, 3906, 3908, 3910, 3912, 3926)
_REFUSED: Final[Mapping[str, str]] = {  # what it would make something else of
    "DATE": "infinity",
    "DATETIME": "infinity",
    "DATETIMETZ": "infinity",
    "TIME": "^24",
    "TIMETZ": "^24",
    "INTERVAL": "mon|year",
}


def register(connection: Any, hstore: tuple[int, int] | None) -> None:
    """Teach a new connection; `hstore` has the oids of that type and its array's."""
    from psycopg2 import extensions, extras  # noqa: PLC0415 - one driver of many

    known: dict[str, _Cast] = {
        "DATE": extensions.PYDATE,
        "TIME": extensions.PYTIME,
        "DATETIME": extensions.PYDATETIME,
        "DATETIMETZ": extensions.PYDATETIMETZ,
        "TIMETZ": extensions.PYTIME,
        "INTERVAL": extensions.PYINTERVAL,
        "JSON": _parse,
        "JSONB": _parse,
    }
    for name, (oid, array) in _ARRAYS.items():
        cast = _total(known[name], _REFUSED.get(name))
        made = extensions.new_type((oid,), name, cast)
        extensions.register_type(made, connection)
        arrays = extensions.new_array_type((array,), f"{name}[]", made)
        extensions.register_type(arrays, connection)
    ranges = extensions.new_type(_RANGES, "RANGE", lambda given, _: given)
    extensions.register_type(ranges, connection)
    if hstore is not None:
        oid, array = hstore
        extras.register_hstore(connection, oid=oid, array_oid=array)


def _total(cast: _Cast, refused: str | None) -> _Cast:
    """Fall back to the text, and take what is refused for one."""

    def total(given: str | None, cursor: Any) -> Any:
        if given is None or (refused and re.search(refused, given)):
            return given
        try:
            return cast(given, cursor)
        except Exception:  # noqa: BLE001 - whatever it is that it cannot hold
            return given

    return total


def _parse(given: str | None, _cursor: Any) -> Any:
    return given if given is None else json.loads(given)
