"""What errors of drivers mean. Each is one that the driver's own server sent."""

import sqlite3
import ssl

import psycopg
import pymysql
import pytest
from sqlalchemy.exc import DBAPIError, NoSuchTableError

from walstream.errors import (
    CertificateRefused,
    ConfigError,
    HistoryError,
    LoginRefused,
    PermissionLacking,
    Transient,
    WalstreamError,
)
from walstream.sources.sql.database.errors import translate

OPERATIONAL = pymysql.err.OperationalError
LOGIN = 'connection to server at "h" failed: FATAL:  '


class PyodbcError(Exception):
    """A driver that is not known here has classes of DB-API's names, too."""


class OperationalError(PyodbcError):
    pass


class Error(Exception):
    pass


class DataError(Error):
    pass


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OPERATIONAL(1045, "Access denied for user 'u'@'h'"), LoginRefused),
        (OPERATIONAL(1142, "SELECT command denied"), PermissionLacking),
        (OPERATIONAL(1049, "Unknown database 'd'"), ConfigError),
        (pymysql.err.ProgrammingError(1146, "Table 'd.t' doesn't exist"), ConfigError),
        (OPERATIONAL(1054, "Unknown column 'c'"), ConfigError),
        (OPERATIONAL(2003, "Can't connect to MySQL server on 'h'"), Transient),
        (OPERATIONAL(2013, "Lost connection to MySQL server"), Transient),
        (OPERATIONAL(1040, "Too many connections"), Transient),
        (OPERATIONAL(1205, "Lock wait timeout exceeded"), Transient),
        (psycopg.errors.InsufficientPrivilege("denied for t"), PermissionLacking),
        (psycopg.errors.InvalidPassword("wrong"), LoginRefused),
        (psycopg.errors.UndefinedTable('relation "t"'), ConfigError),
        (psycopg.errors.UndefinedColumn('column "c"'), ConfigError),
        (psycopg.errors.AdminShutdown("terminating connection"), Transient),
        (psycopg.errors.LockNotAvailable("lock timeout"), Transient),
        (psycopg.errors.TooManyConnections("sorry"), Transient),
        (psycopg.errors.CrashShutdown("bye"), Transient),
        (
            psycopg.OperationalError(f'{LOGIN}role "r" does not exist'),
            LoginRefused,
        ),
        (psycopg.OperationalError(f"{LOGIN}no pg_hba.conf entry"), LoginRefused),
        (
            psycopg.OperationalError(f"{LOGIN}password authentication failed for u"),
            LoginRefused,
        ),
        (psycopg.OperationalError(f'{LOGIN}database "d" does not exist'), ConfigError),
        (psycopg.OperationalError("failed to resolve host 'h'"), Transient),
        (psycopg.OperationalError("consuming input failed: server closed"), Transient),
        (psycopg.ProgrammingError('invalid connection option "x"'), ConfigError),
        (ConnectionResetError(104, "Connection reset by peer"), Transient),
        (TimeoutError("timed out"), Transient),
        (OperationalError("08S01", "Communication link failure"), Transient),
    ],
    ids=lambda given: type(given).__name__,
)
def test_known_error_keeps_the_words_of_its_server(
    error: Exception, kind: type[WalstreamError]
) -> None:
    said = translate(error, "reading t")
    assert type(said) is kind
    assert str(said.args[0]).startswith("reading t: ")
    assert str(error.args[-1])[-5:] in str(said.args[0])
    assert said.hint


@pytest.mark.parametrize(
    "error",
    [
        pymysql.err.DataError(1292, "Incorrect value: 'private'"),
        psycopg.errors.InvalidTextRepresentation('invalid integer: "private"'),
        sqlite3.IntegrityError("private"),
        DataError("Conversion failed when converting the value 'private'"),
        NoSuchTableError("private"),
    ],
    ids=lambda given: type(given).__name__,
)
def test_unknown_error_may_show_a_row_and_is_not_quoted(error: Exception) -> None:
    said = translate(error)
    assert type(said) is ConfigError
    assert "private" not in str(said)
    assert type(error).__name__ in str(said)


def test_code_of_an_unknown_error_is_shown() -> None:
    assert "error 1292" in str(translate(pymysql.err.DataError(1292, "x")))
    state = psycopg.errors.InvalidTextRepresentation("x")
    assert "SQLSTATE 22P02" in str(translate(state))


def test_error_of_sqlalchemy_is_judged_by_the_drivers_within() -> None:
    inner = OPERATIONAL(1142, "SELECT command denied")
    error = DBAPIError("SELECT 'private'", {"p": "private"}, inner)
    said = translate(error)
    assert type(said) is PermissionLacking
    assert "private" not in str(said)


def test_lost_connection_may_be_tried_again_whatever_was_said() -> None:
    inner = pymysql.err.ProgrammingError(1146, "Table doesn't exist")
    error = DBAPIError("SELECT", {}, inner, connection_invalidated=True)
    assert type(translate(error)) is Transient


def test_secret_is_taken_out() -> None:
    error = psycopg.OperationalError("failed to resolve host 'hunter2@h'")
    assert "hunter2" not in str(translate(error, secret="hunter2"))  # noqa: S106 - a test's


VERIFY = "Can't connect ([SSL: CERTIFICATE_VERIFY_FAILED] certificate has expired)"


@pytest.mark.parametrize(
    ("error", "hint"),
    [
        (OPERATIONAL(2003, VERIFY), "renew the server's certificate"),
        (OPERATIONAL(2013, "[SSL: TLSV1_ALERT_UNKNOWN_CA] alert"), "renew ssl_cert"),
        (psycopg.OperationalError("SSL error: tlsv1 alert unknown ca"), "sslcert"),
        (FileNotFoundError(2, "No such file or directory"), "correct ssl_ca"),
        (ssl.SSLError("[X509: KEY_VALUES_MISMATCH]"), "correct ssl_ca"),
    ],
)
def test_certificate_that_does_not_hold_is_no_trouble_that_passes(
    error: Exception, hint: str
) -> None:
    said = translate(error, "connecting")
    assert type(said) is CertificateRefused
    assert said.exit_code == 2
    assert hint in said.hint


def test_missing_cryptography_names_its_package() -> None:
    error = RuntimeError("'cryptography' package is required for sha256_password")
    assert "pip install 'pymysql[rsa]'" in str(translate(error))


def test_argument_that_the_driver_does_not_know_is_named() -> None:
    error = TypeError("connect() got an unexpected keyword argument 'colour'")
    assert "'colour'" in str(translate(error))
    assert type(translate(AttributeError("x"))) is ConfigError


def test_our_own_error_stays_the_same() -> None:
    error = HistoryError("gone")
    assert translate(error) is error


def test_long_words_are_cut_and_on_one_line() -> None:
    said = str(translate(OPERATIONAL(2003, "a\n b " + "x" * 1000)).args[0])
    assert "a b x" in said
    assert len(said) < 400
