"""Types of columns: the oid of the built-in type that a text is written as.

The server names each type that is not built in by a Type message, and a domain by the
type that it is made over; the catalog is asked for the same two names. So what is
streamed and what is read beside the stream are known by the same oid.
"""

from typing import Final

ARRAY: Final = 2277
"""anyarray, a pseudo-type: an array whose elements are of no built-in type."""

_FIRST_NAMED: Final = 10_000  # FirstGenbkiObjectId: oids below are the same everywhere
_CATALOG: Final = "pg_catalog"
_OIDS: Final = {
    "bool": 16,
    "int8": 20,
    "int2": 21,
    "int4": 23,
    "json": 114,
    "float4": 700,
    "float8": 701,
    "date": 1082,
    "timestamp": 1114,
    "timestamptz": 1184,
    "jsonb": 3802,
    "_bool": 1000,
    "_int8": 1016,
    "_int2": 1005,
    "_int4": 1007,
    "_json": 199,
    "_float4": 1021,
    "_float8": 1022,
    "_date": 1182,
    "_timestamp": 1115,
    "_timestamptz": 1185,
    "_jsonb": 3807,
    "_box": 1020,
}
"""Those of which more is known than that they are texts, or arrays of texts."""


def written_as(oid: int, namespace: str, name: str) -> int:
    """Return the oid of the built-in type that a type's texts are written as.

    `namespace` and `name` are those of the type, or where it is a domain, of the type
    below it. The oid itself where nothing is known: a text.
    """
    if oid < _FIRST_NAMED:
        return oid
    if namespace == _CATALOG and name in _OIDS:
        return _OIDS[name]
    # as the server names array types; a type of another kind may be named so, too
    return ARRAY if name.startswith("_") else oid
