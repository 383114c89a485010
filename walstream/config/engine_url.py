"""URLs of SQLAlchemy engines: where they lead, and what makes a driver verify TLS.

Only `sql/` may load SQLAlchemy, and the configuration has to know both before anything
connects. What SQLAlchemy would misread aloud (the rest of a password as a host) is
refused here without a word of it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

from walstream.config import dsn

_URL: Final = re.compile(
    r"""(?P<dialect>[A-Za-z]\w*)(?:\+(?P<driver>\w+))?://
    (?>(?:[^:/]*(?::[^@]*)?@)?)  # what may be a password is none of the host
    (?:\[(?P<bracketed>[^/?]+)\]|(?P<host>(?!\[)[^/:?]+))?
    (?::(?P<port>[^/?]*))?
    (?:/[^?]*)?
    (?:\?(?P<query>.*))?""",
    re.VERBOSE,
)
_ODBC_SERVER: Final = re.compile(r"server\s*=\s*(?:tcp:)?\{?([^;,\\}]*)", re.IGNORECASE)
_ODBC_PAIR: Final = re.compile(r"([^=;]+)=([^;]*)")
_PORT: Final = re.compile(r"(?<=[^:]):[0-9]+$")
_MYSQL: Final = frozenset({"mysql", "mariadb"})


@dataclass(frozen=True)
class Engine:
    """Server of a URL."""

    dialect: str  # mysql
    driver: str  # pymysql; "" is the dialect's own
    host: str  # "" is this machine, for every driver
    query: Mapping[str, str]  # of keys that stand twice both values, with a comma


def parse(url: str) -> Engine:
    """Read a URL as SQLAlchemy does; ValueError names no part of it."""
    found = _URL.fullmatch(url)
    if not found:
        raise ValueError("is not a URL: write scheme://user@host/database")
    host = found["bracketed"] or found["host"] or ""
    if "@" in host:
        raise ValueError("has an @ in its host: in a password write @ as %40")
    if not re.fullmatch(r"[0-9]+", "0" if found["port"] is None else found["port"]):
        raise ValueError("has no number as its port: in a user's name write / as %2F")
    query: dict[str, str] = {}
    for key, value in parse_qsl(found["query"] or ""):
        query[key] = f"{query[key]},{value}" if key in query else value
    return Engine(found["dialect"], found["driver"] or "", host, query)


def remote_hosts(engine: Engine, environment: Mapping[str, str]) -> list[str] | None:
    """Hosts that are not this machine; None: what decides is not read here."""
    hosts: list[str] | None = [engine.host]
    if engine.dialect == "postgresql":
        hosts = _postgres_hosts(engine, environment)
    elif engine.dialect in _MYSQL and engine.query.get("unix_socket"):
        hosts = []
    elif odbc := engine.query.get("odbc_connect"):
        # without a server it has a data source's name
        hosts = [found[1].strip() for found in _ODBC_SERVER.finditer(odbc)] or None
    if hosts is None:
        return None
    return [host for host in hosts if not dsn.is_local(host)]


def _postgres_hosts(engine: Engine, environment: Mapping[str, str]) -> list[str] | None:
    """List those that libpq would try; SQLAlchemy lets each of them have a port."""
    parameters = {key: engine.query.get(key, "") for key in ("hostaddr", "service")}
    parameters["host"] = engine.query.get("host") or engine.host
    servers = dsn.servers(parameters, environment)
    if servers is None:
        return None
    return [_PORT.sub("", host) for host, _ in servers]


def verifies(engine: Engine, environment: Mapping[str, str]) -> bool:
    """Return whether the driver compares the server's name with its certificate."""
    query = {**engine.query}
    if engine.dialect == "postgresql":
        query.setdefault("sslmode", environment.get("PGSSLMODE", ""))
    found = _rule(engine)
    return found is not None and found[0](query)


def advice(engine: Engine) -> str:
    """Return what to add to the query; "" where nothing is known to do it."""
    found = _rule(engine)
    return found[1] if found else ""


_Query = Mapping[str, str]
_Rule = tuple[Callable[[_Query], bool], str]
_FALSE: Final = frozenset({"false", "f", "no", "n", "off", "0"})
_TRUE: Final = frozenset({"true", "yes", "1", "mandatory", "strict"})


def _pymysql(query: _Query) -> bool:
    # through SQLAlchemy these make it forget ssl_ca, and the host's name with it
    lost = {"ssl_verify_cert", "ssl_verify_identity", "ssl_disabled"} & query.keys()
    trusted = query.get("ssl_ca") or query.get("ssl_capath")
    checked = query.get("ssl_check_hostname", "true").lower() not in _FALSE
    return bool(trusted) and checked and not lost


def _odbc(query: _Query) -> bool:
    pairs = {**query, **dict(_ODBC_PAIR.findall(query.get("odbc_connect", "")))}
    folded = {key.strip().lower(): value.lower() for key, value in pairs.items()}
    encrypted = folded.get("encrypt", "") in _TRUE
    return encrypted and folded.get("trustservercertificate", "no") not in _TRUE


_RULES: Final[Mapping[tuple[str, str], _Rule]] = {
    ("postgresql", ""): (
        lambda query: query["sslmode"] == "verify-full",
        (
            "sslmode=verify-full (with sslrootcert=FILE, or sslrootcert=system for a "
            "public authority)"
        ),
    ),
    ("mysql", "pymysql"): (_pymysql, "ssl_ca=FILE alone"),
    ("mysql", "mysqldb"): (
        lambda query: query.get("ssl_mode") == "VERIFY_IDENTITY",
        "ssl_mode=VERIFY_IDENTITY (with ssl_ca=FILE)",
    ),
    ("mssql", "pyodbc"): (_odbc, "Encrypt=yes (without TrustServerCertificate)"),
}


def _rule(engine: Engine) -> _Rule | None:
    dialect, driver = engine.dialect, engine.driver
    if dialect == "postgresql":
        return _RULES["postgresql", ""]
    if dialect in _MYSQL:
        return _RULES.get(("mysql", driver or "mysqldb"))
    return _RULES.get((dialect, driver or "pyodbc"))
