"""Translation of a driver's errors, by the vendor's codes.

Words of the server are shown where they can hold no value of a row: beside the codes
that are known here, and of connections.
"""

from collections.abc import Callable, Iterable, Mapping
from ssl import SSLError
from typing import Any, Final, TypeVar

from sqlalchemy.exc import DBAPIError

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
from walstream.sources.sql.database.driver import install

_GRANT: Final = "grant the right to the url's user, or correct the url, then run again"
_CORRECT: Final = "correct the configuration, or create what is missing"
_RENEW: Final = (
    "renew the server's certificate if it has expired, correct the url's host if it "
    "is another's, or ssl_ca (PostgreSQL: sslrootcert) if another authority signed it"
)
_FILES: Final = (
    "correct ssl_ca, ssl_cert or ssl_key of the url: PEM files, the key not encrypted"
)
_CLIENT: Final = (
    "renew ssl_cert (PostgreSQL: sslcert): the server refuses this client's "
    "certificate, or wants one"
)
_HINTS: Final[dict[type[WalstreamError], str]] = {
    Transient: RETRIED,
    PermissionLacking: _GRANT,
    LoginRefused: (
        "correct the url's user or password, or allow the user to log in from this host"
    ),
    ConfigError: _CORRECT,
    CertificateRefused: _RENEW,
}
# by the code that ends the words: who may hold the lock
_LOCKED: Final[dict[str, Repair]] = {
    "(55P03)": Repair(
        sql="SELECT relation::regclass, mode, pid, state, query FROM pg_locks JOIN"
        " pg_stat_activity USING (pid) WHERE granted AND mode = 'AccessExclusiveLock';"
    ),
    "(1205)": Repair(sql="SHOW FULL PROCESSLIST;"),
}
_ALERTS: Final = (
    *("alert unknown ca", "alert bad certificate", "alert certificate"),
    "requires a valid client certificate",
)
_HIDES_ROWS: Final = "check_enable_rls"  # raises it, whatever the server's language
_BYPASS: Final = (
    "run: ALTER ROLE … BYPASSRLS; for the url's user (of a view, for its owner), or"
    " poll a view whose owner sees all rows: a hidden row would count as missing"
)
_MOST_WORDS: Final = 300  # characters
Kind = type[WalstreamError]
_Codes = TypeVar("_Codes")

# MariaDB and MySQL manuals, error codes
_MYSQL: Final[dict[Kind, frozenset[int]]] = {
    LoginRefused: frozenset({1045, 1130, 1698, 1820, 1862, 3118, 3955, 4151}),
    PermissionLacking: frozenset({1044, 1142, 1143, 1227, 1370}),
    ConfigError: frozenset({1049, 1051, 1054, 1109, 1146, 1356, 1932, 2059, 2061}),
    Transient: frozenset(
        {1021, 1037, 1040, 1041, 1053, 1077, 1078, 1079, 1080, 1129, 1152}
        | {1158, 1159, 1160, 1161, 1184, 1203, 1205, 1213, 1317, 1412}
        | {1615, 1836, 1927, 1969, 2002, 2003, 2005, 2006, 2012, 2013, 2014}
        | {2026, 2027, 2055, 3024, 3159, 3168, 3169, 4031}
    ),
}
# PostgreSQL manual, appendix "Error Codes": the whole code, or its class
_POSTGRES: Final[dict[Kind, tuple[str, ...]]] = {
    LoginRefused: ("28",),
    PermissionLacking: ("42501",),
    ConfigError: ("3D000", "3F000", "42P01", "42703", "55000", "0A000"),
    Transient: ("08", "40", "53", "57", "58", "55006", "55P03"),
}
# libpq keeps the SQLSTATE of a refused connection to itself
_POSTGRES_WORDS: Final[tuple[tuple[str, Kind], ...]] = (
    ("authentication failed", LoginRefused),
    ("no password supplied", LoginRefused),
    ("pg_hba.conf", LoginRefused),
    ("is not permitted to log in", LoginRefused),
    ("permission denied for database", PermissionLacking),
    ('role "', LoginRefused),
    ('database "', ConfigError),
    ("server does not support SSL", ConfigError),
    ("certificate verify failed", CertificateRefused),
    ("does not match host name", CertificateRefused),
    *((said, CertificateRefused) for said in _ALERTS),
    ("root certificate file", CertificateRefused),
    ("private key file", CertificateRefused),
    ("certificate file", CertificateRefused),
    ("invalid connection option", ConfigError),
    ("invalid URI", ConfigError),
)
# sqlite.org, "Result and Error Codes"
_SQLITE: Final[dict[Kind, tuple[str, ...]]] = {
    PermissionLacking: ("SQLITE_AUTH", "SQLITE_PERM", "SQLITE_READONLY"),
    ConfigError: ("SQLITE_NOTADB", "SQLITE_CORRUPT", "SQLITE_CANTOPEN", "SQLITE_ERROR"),
    Transient: (
        *("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_IOERR", "SQLITE_FULL"),
        *("SQLITE_NOMEM", "SQLITE_PROTOCOL", "SQLITE_INTERRUPT", "SQLITE_SCHEMA"),
    ),
}
# of what has no code that is known here: broken connections, mostly
_PASSING: Final = frozenset({"OperationalError", "InterfaceError", "InternalError"})


def translate(
    error: BaseException, doing: str = "asking the database", secret: str = ""
) -> WalstreamError:
    """Return what to do about it; the text has no row's value and no secret."""
    if isinstance(error, WalstreamError):
        return error
    original = error
    if isinstance(error, DBAPIError) and error.orig is not None:
        original = error.orig
    kind, words = _judge(original)
    lost = isinstance(error, DBAPIError) and error.connection_invalidated
    if lost and kind is not CertificateRefused:
        kind = Transient
    if secret:
        words = words.replace(secret, "***")
    repair = next((sql for code, sql in _LOCKED.items() if code in words), NO_REPAIR)
    hint = _BYPASS if hides_rows(error) else _HINTS.get(kind, "")
    if kind is CertificateRefused and isinstance(original, OSError):
        hint = _FILES
    elif kind is CertificateRefused and _asks_for_one(words):
        hint = _CLIENT
    return kind(f"{doing}: {words}", hint=hint, repair=repair)


def hides_rows(error: BaseException) -> bool:
    """Return whether PostgreSQL refuses since a policy would hide rows."""
    original = error.orig if isinstance(error, DBAPIError) else error
    diagnosis = getattr(original, "diag", None)
    return getattr(diagnosis, "source_function", None) == _HIDES_ROWS


def _judge(error: BaseException) -> tuple[Kind, str]:
    vendor = type(error).__module__.partition(".")[0]
    judge = _VENDORS.get(vendor, _judge_any)
    return judge(error)


def _judge_mysql(error: BaseException) -> tuple[Kind, str]:
    code: Any = getattr(error, "errno", None) or next(iter(error.args), None)
    if not isinstance(code, int):
        return _judge_any(error)
    known = _kind_of(_MYSQL, lambda codes: code in codes)
    if "CERTIFICATE_VERIFY_FAILED" in str(error) or _asks_for_one(str(error)):
        known = CertificateRefused
    if known is None:
        return _unknown(error, f"error {code}")
    return known, f"{_line(error.args[-1])} ({code})"


def _judge_postgres(error: BaseException) -> tuple[Kind, str]:
    state = getattr(error, "sqlstate", None) or getattr(error, "pgcode", None)
    diagnosis: Any = getattr(error, "diag", None)
    text = _line(getattr(diagnosis, "message_primary", None) or str(error))
    if state is None:
        for part, kind in _POSTGRES_WORDS:
            if part in text:
                return kind, text
        return _judge_any(error)
    known = _kind_of(_POSTGRES, state.startswith)
    if known is None:
        return _unknown(error, f"SQLSTATE {state}")
    return known, f"{text} ({state})"


def _judge_sqlite(error: BaseException) -> tuple[Kind, str]:
    name = getattr(error, "sqlite_errorname", "")
    known = _kind_of(_SQLITE, name.startswith) if name else None
    if known is None:
        return _judge_any(error)
    return known, f"{_line(error)} ({name})"


def _asks_for_one(words: str) -> bool:
    """Return whether a server refuses for the client's own certificate."""
    return any(said in words.lower().replace("_", " ") for said in _ALERTS)


def _judge_any(error: BaseException) -> tuple[Kind, str]:
    # drivers wrap what a connection raises, but not what they raise in reading files
    if isinstance(error, (SSLError, FileNotFoundError, PermissionError)):
        return CertificateRefused, f"files of TLS: {_line(error)}"
    if isinstance(error, OSError) or _has_base(error, _PASSING):
        return Transient, _line(error) or type(error).__name__
    if isinstance(error, RuntimeError) and "cryptography" in str(error):
        return ConfigError, f"the server's log-in needs {install('pymysql[rsa]')}"
    if isinstance(error, TypeError):  # it names an argument
        return ConfigError, f"the driver refuses the url: {_line(error)}"
    if not _is_of_driver(error):
        return ConfigError, f"the driver refuses the url ({type(error).__name__})"
    return _unknown(error, "")


def _unknown(error: BaseException, code: str) -> tuple[Kind, str]:
    kind = Transient if _has_base(error, _PASSING) else ConfigError
    return kind, " ".join(filter(None, (type(error).__name__, code)))


_Judge = Callable[[BaseException], tuple[Kind, str]]
_VENDORS: Final[dict[str, _Judge]] = {
    "pymysql": _judge_mysql,
    "MySQLdb": _judge_mysql,
    "mysql": _judge_mysql,
    "mariadb": _judge_mysql,
    "psycopg": _judge_postgres,
    "psycopg2": _judge_postgres,
    "sqlite3": _judge_sqlite,
}


def _kind_of(
    kinds: Mapping[Kind, _Codes], matches: Callable[[_Codes], bool]
) -> Kind | None:
    return next((kind for kind, codes in kinds.items() if matches(codes)), None)


def _is_of_driver(error: BaseException) -> bool:
    return _has_base(error, {"Error", "SQLAlchemyError"})


def _has_base(error: BaseException, names: Iterable[str]) -> bool:
    """Whether one of DB-API's classes is among its bases: each driver has its own."""
    wanted = set(names)
    return any(base.__name__ in wanted for base in type(error).__mro__)


def _line(said: object) -> str:
    """Put it on one line: the first paragraph, whose rest is advice."""
    text = " ".join(str(said).partition("\n\n")[0].split())
    return text[:_MOST_WORDS]
