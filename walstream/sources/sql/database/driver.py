"""Driver of a URL, and what to install if it is missing.

A URL that names no driver takes the first that is installed.
"""

from collections.abc import Mapping
from importlib.util import find_spec
from shlex import quote
from typing import TYPE_CHECKING, Final

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from walstream.errors import ConfigError

if TYPE_CHECKING:
    from sqlalchemy.engine import Dialect

# driver of SQLAlchemy, and the module that it loads: the first is what to install
_MYSQL: Final = (("pymysql", "pymysql"), ("mysqldb", "MySQLdb"))
_UNNAMED: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "postgresql": (("psycopg", "psycopg"), ("psycopg2", "psycopg2")),
    "mysql": _MYSQL,
    "mariadb": _MYSQL,
    "oracle": (("oracledb", "oracledb"), ("cx_oracle", "cx_Oracle")),
}
_ALIASES: Final[Mapping[str, str]] = {"postgres": "postgresql"}
_PACKAGES: Final[Mapping[str, str]] = {  # where a package is not called as its module
    "MySQLdb": "mysqlclient",
    "mysql": "mysql-connector-python",
    "psycopg": "psycopg[binary]",
    "psycopg2": "psycopg2-binary",
    "pymysql": "pymysql[rsa]",
}
_DIALECTS: Final[Mapping[str, str]] = {  # that SQLAlchemy does not bring itself
    "bigquery": "sqlalchemy-bigquery",
    "clickhouse": "clickhouse-sqlalchemy",
    "cockroachdb": "sqlalchemy-cockroachdb",
    "databricks": "databricks-sqlalchemy",
    "db2": "ibm_db_sa",
    "duckdb": "duckdb-engine",
    "firebird": "sqlalchemy-firebird",
    "hana": "sqlalchemy-hana",
    "ibm_db_sa": "ibm_db_sa",
    "redshift": "sqlalchemy-redshift",
    "snowflake": "snowflake-sqlalchemy",
    "teradatasql": "teradatasqlalchemy",
    "trino": "trino[sqlalchemy]",
}


def resolve(url: str) -> URL:
    """Read the URL, with a driver that is installed; ConfigError shows no part of it.

    The name of its engine is shown, though: it holds no secret.
    """
    try:
        asked = make_url(url)
    except (ArgumentError, ValueError):
        raise ConfigError(
            "the url is not a SQLAlchemy URL",
            hint="write dialect+driver://user:password@host:port/database, with"
            " %40 for an @ in the password and %2F for a /",
        ) from None
    named = _named(asked)
    _load(named)
    return named


def _named(url: URL) -> URL:
    dialect, plus, driver = url.drivername.partition("+")
    dialect = _ALIASES.get(dialect, dialect)
    if not plus and dialect in _UNNAMED:
        known = _UNNAMED[dialect]
        driver = next((one for one, module in known if find_spec(module)), known[0][0])
        plus = "+"
    return url.set(drivername=f"{dialect}{plus}{driver}")


def _load(url: URL) -> None:
    """Load dialect and driver; tell what to install where one is missing."""
    try:
        dialect: type[Dialect] = url.get_dialect()
    except NoSuchModuleError:
        raise _unknown(url) from None
    if dialect.is_async:
        raise ConfigError(
            f"{url.drivername} is for asyncio only: name another driver",
            hint=f"write {url.get_backend_name()}:// for the default driver",
        )
    try:
        dialect.import_dbapi()
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        raise _missing(url, module) from None
    except ImportError as error:  # a shared library that it needs
        raise ConfigError(f"the driver of {url.drivername} fails: {error}") from None


def _unknown(url: URL) -> ConfigError:
    dialect = url.get_backend_name()
    driver = url.drivername.partition("+")[2]
    if package := _DIALECTS.get(dialect):
        return ConfigError(f"{dialect}:// needs a package: {install(package)}")
    what = url.drivername if driver else dialect
    return ConfigError(
        f"SQLAlchemy knows no {what}://",
        hint="correct the url, or install the package that brings this dialect",
    )


def _missing(url: URL, module: str) -> ConfigError:
    package = _PACKAGES.get(module, module) or url.get_driver_name()
    return ConfigError(f"the driver of {url.drivername} is missing: {install(package)}")


def install(package: str) -> str:
    """Write the command that installs a package."""
    return f"pip install {quote(package)}"


def place(url: URL) -> str:
    """Return which database it is, without user or secret."""
    where = f" at {url.host}" if url.host else ""
    port = f":{url.port}" if url.host and url.port else ""
    return f"the {url.get_backend_name()} database {url.database or ''}{where}{port}"
