"""The connection string, of what Debezium tells PostgreSQL's JDBC driver."""

import re
from typing import Final

from walstream.admin.connector.draft import Draft
from walstream.admin.connector.references import References

_PLAIN: Final = re.compile(r"[^'\\\s]+")
_REQUIRED: Final = ("database.hostname", "database.user", "database.dbname")
_PARAMETERS: Final = {
    "database.hostname": "host",
    "database.port": "port",
    "database.user": "user",
    "database.password": "password",
    "database.dbname": "dbname",
    "database.sslmode": "sslmode",
    "database.sslrootcert": "sslrootcert",
    "database.sslcert": "sslcert",
    "database.sslkey": "sslkey",
    "database.sslpassword": "sslpassword",
    "database.ApplicationName": "application_name",
    "database.connectTimeout": "connect_timeout",
}
_DER: Final = (".pk8", ".der", ".p12", ".pfx")


def translate(draft: Draft, references: References) -> None:
    """Write the dsn, its parameters in libpq's spelling."""
    pairs = []
    place = f"[{draft.header('source')}] dsn"
    for key, name in _PARAMETERS.items():
        if not draft.get(key):
            if draft.has(key):
                draft.inert(key, "it is empty")
            continue
        pairs.append(f"{name}={_value(draft, references, key)}")
        draft.became(key, f"{place}, {name}", _remark(references, key))
        if key == "database.sslkey" and draft.get(key).lower().endswith(_DER):
            draft.decide(key, "libpq reads a key in PEM: openssl pkey converts it")
    if draft.get("database.tcpKeepAlive").lower() == "false":
        pairs.append("keepalives=0")
        draft.became("database.tcpKeepAlive", f"{place}, keepalives=0")
    elif draft.has("database.tcpKeepAlive"):
        draft.inert("database.tcpKeepAlive", "libpq keeps connections alive, too")
    draft.tables["source"]["dsn"] = " ".join(pairs)
    if draft.get("database.sslfactory"):
        draft.decide(
            "database.sslfactory",
            "Java's: sslmode and sslrootcert say which servers are trusted",
        )


def missing(draft: Draft) -> list[str]:
    """Return what a connector has to say of its database, and does not."""
    return [key for key in _REQUIRED if not draft.get(key)]


def _value(draft: Draft, references: References, key: str) -> str:
    """Write a parameter, in quotes where a value may hold anything."""
    written = references.written(key, _escaped)
    quoted = not _PLAIN.fullmatch(draft.get(key)) or "${" in written
    return f"'{written}'" if quoted else written


def _escaped(text: str) -> str:
    return re.sub(r"(['\\])", r"\\\1", text)


def _remark(references: References, key: str) -> str:
    if key == "database.password" and references.refers(key):
        return "a ' or \\ in it needs a \\ before it there"
    return ""
