"""Errors of failed connections, by the server's words or by their SQLSTATE.

English words tell more than the SQLSTATE, which has to do in any other language. What
neither says is taken for one that passes, and tried again.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from walstream.errors import (
    NO_REPAIR,
    RETRIED,
    CertificateRefused,
    ConfigError,
    LoginRefused,
    PermissionLacking,
    Repair,
    Transient,
    WalstreamError,
)
from walstream.postgres import quoting

DIRECTLY: Final = (
    "write PostgreSQL's own host and port in the dsn: a pooler (PgBouncer, RDS Proxy, "
    "Supavisor) is in between"
)
"""What to do about a pooler."""


@dataclass(frozen=True, slots=True)
class _Refusal:
    part: str  # of the server's words
    kind: type[WalstreamError]
    hint: str
    sql: str = ""  # {role} and {database} are the quoted ones of the connection


_REFUSALS: Final = (
    _Refusal("too many connections", Transient, RETRIED),
    _Refusal("not currently accepting", Transient, RETRIED),
    _Refusal("max_wal_senders", Transient, "raise max_wal_senders, or end a replica"),
    _Refusal(
        "password authentication failed", LoginRefused, "correct user or password"
    ),
    _Refusal("no password supplied", LoginRefused, "add the password to the dsn"),
    _Refusal(
        "certificate authentication failed",
        LoginRefused,
        "use the name in sslcert as the user, or map it in pg_ident.conf",
    ),
    _Refusal("authentication failed", LoginRefused, "correct the role or pg_hba.conf"),
    _Refusal("pg_hba.conf", LoginRefused, "allow this host in pg_hba.conf"),
    _Refusal(
        "permission denied to start WAL sender",
        PermissionLacking,
        "give the dsn's role the right to replicate",
        "ALTER ROLE {role} REPLICATION;",
    ),
    _Refusal(
        "must be superuser or replication role",
        PermissionLacking,
        "give the dsn's role the right to replicate",
        "ALTER ROLE {role} REPLICATION;",
    ),
    _Refusal(
        "permission denied for database",
        PermissionLacking,
        "give the dsn's role the right to connect to this database",
        "GRANT CONNECT ON DATABASE {database} TO {role};",
    ),
    _Refusal(
        "is not permitted to log in",
        LoginRefused,
        "give the dsn's role the right to log in",
        "ALTER ROLE {role} LOGIN;",
    ),
    _Refusal(
        'FATAL:  role "',
        LoginRefused,
        "create the role, or correct the dsn",
        "CREATE ROLE {role} LOGIN REPLICATION;",
    ),
    _Refusal(
        'FATAL:  database "', ConfigError, "create the database, or correct the dsn"
    ),
    _Refusal("unsupported startup parameter", ConfigError, DIRECTLY),  # PgBouncer
    _Refusal("RDS Proxy currently", ConfigError, DIRECTLY),
    _Refusal("invalid connection option", ConfigError, "correct the dsn"),
    _Refusal("server does not support SSL", ConfigError, "enable TLS in the server"),
    _Refusal(
        "certificate verify failed",
        CertificateRefused,
        "renew the server's certificate if it has expired, or correct sslrootcert if "
        "another authority signed it",
    ),
    _Refusal(
        "requires a valid client certificate",
        CertificateRefused,
        "set sslcert and sslkey, of an authority in the server's ssl_ca_file",
    ),
    *(
        _Refusal(
            f"alert {said}",
            CertificateRefused,
            "renew sslcert if it has expired, or use one signed by an authority in "
            "the server's ssl_ca_file: the server refuses this one",
        )
        for said in ("unknown ca", "bad certificate", "certificate")
    ),
    _Refusal("root certificate file", CertificateRefused, "correct sslrootcert"),
    _Refusal(
        "has group or world access",
        CertificateRefused,
        "make the key private: chmod 0600 FILE",
    ),
    _Refusal(
        "private key file",
        CertificateRefused,
        "correct sslkey, or sslpassword if the key is encrypted",
    ),
    _Refusal("certificate file", CertificateRefused, "correct sslcert"),
    _Refusal(
        "certificate present, but not private key", CertificateRefused, "set sslkey"
    ),
    _Refusal(
        "does not match host name", CertificateRefused, "correct the dsn's host name"
    ),
)
_STATES: Final[Mapping[str, _Refusal]] = {
    "28P01": _Refusal("", LoginRefused, "correct user or password"),
    "28000": _Refusal(
        "",
        LoginRefused,
        "let the dsn's role log in, and this host in pg_hba.conf; or correct the dsn",
    ),
    "42501": _Refusal(
        "",
        PermissionLacking,
        "give the dsn's role the rights to connect to this database and to replicate",
        "GRANT CONNECT ON DATABASE {database} TO {role}; "
        "ALTER ROLE {role} REPLICATION;",
    ),
    "3D000": _Refusal("", ConfigError, "create the database, or correct the dsn"),
}
_STARTS: Final = "57P03"  # or shuts down, as one of several hosts may
_ADVICE: Final = re.compile(r"\.? Either provide the file.* verification\.?")  # libpq's
_HBA: Final = re.compile(
    r'pg_hba\.conf.* for host "(?P<host>[^"]*)", user "(?P<user>.*)",'
    r' database "(?P<database>.*)", (?P<how>no|SSL|GSS) encryption'
)
_HBA_TYPES: Final = {"no": "host", "SSL": "hostssl", "GSS": "hostgssenc"}


def refused(
    doing: str,
    text: str,
    role: str = "",
    database: str = "",
    states: Collection[str] = (),
) -> WalstreamError:
    """Return what it means; what is not known may pass, and is tried again.

    `states` are the SQLSTATEs of the server's refusals, as far as they are known.
    """
    text = _ADVICE.sub("", text)
    if "does not exist" in text or "database system" not in text:
        said = [refusal for refusal in _REFUSALS if refusal.part in text]
        if _STARTS not in states:
            said += [_STATES[state] for state in _STATES if state in states]
        for refusal in said[:1]:
            return refusal.kind(
                f"{doing}: {text}",
                hint=refusal.hint,
                repair=_repair(refusal, text, role, database),
            )
    return Transient(f"{doing}: {text}", hint=RETRIED)


def _repair(refusal: _Refusal, text: str, role: str, database: str) -> Repair:
    if refusal.kind is Transient:
        return NO_REPAIR
    if line := hba_line(text):
        return Repair(
            then=(
                "add to pg_hba.conf, above the line that refuses it, and reload: "
                f"{line}"
            )
        )
    if not refusal.sql:
        return Repair(then=refusal.hint)
    if not role:
        return NO_REPAIR
    names = {"role": quoting.name(role), "database": quoting.name(database)}
    return Repair(sql=refusal.sql.format(**names))


def hba_line(text: str) -> str:
    """Write the line of pg_hba.conf that would let this connection in."""
    found = _HBA.search(text)
    if found is None:
        return ""
    user, database = found["user"], found["database"]
    whom = f'"{database}" "{user}"'
    if (host := found["host"]) == "[local]":
        return f"local {whom} scram-sha-256"
    bits = 128 if ":" in host else 32
    return f"{_HBA_TYPES[found['how']]} {whom} {host}/{bits} scram-sha-256"
