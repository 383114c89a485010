"""Connections, and what their errors mean.

Every session that yields values prints them the same way, whatever the role's or the
database's settings: a replay and a backfill repeat the stream byte for byte.
"""

import os
import re
import select
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from weakref import WeakSet

import psycopg
from psycopg import conninfo

from walstream.config.password_command import password_of
from walstream.config.password_command_dsn import take_out
from walstream.config.tls_files import refuse_missing
from walstream.errors import (
    RESET,
    RETRIED,
    ConfigError,
    HistoryError,
    LoginRefused,
    PermissionLacking,
    PublicationLost,
    SlotLost,
    Transient,
    WalstreamError,
)
from walstream.postgres import slot_loss
from walstream.postgres.connection_attempt import VerboseConnection, refusal
from walstream.postgres.connection_errors import DIRECTLY, refused

Connection = psycopg.Connection[tuple[Any, ...]]
_open: Final[WeakSet[Connection]] = WeakSet()

# PostgreSQL manual, "Client Connection Defaults"; a value in `options` beats the
# settings of role and database.
VALUE_SETTINGS: Final[Mapping[str, str]] = {
    "client_encoding": "UTF8",
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "extra_float_digits": "3",
    "bytea_output": "hex",
    "TimeZone": "UTC",
    "xmlbinary": "base64",
    # reg* values carry their schema; and no query of ours can be led astray
    "search_path": "pg_catalog,pg_temp",
    "lc_monetary": "C",
    "quote_all_identifiers": "off",
}
_SESSION_SETTINGS: Final = {
    **VALUE_SETTINGS,
    # PostgreSQL 18 tells of a dropped publication by a warning only
    "client_min_messages": "warning",
    # a policy that hides rows is an error: none is missed, and nobody's function runs
    "row_security": "off",
}
# libpq sends these as startup parameters, which beat `options`.
_SETTING_VARIABLES: Final = ("PGDATESTYLE", "PGTZ")
_CONNECT_TIMEOUT_S: Final = 5


_BUNDLES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Alpine, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",  # Fedora, RHEL, Amazon
    "/etc/ssl/ca-bundle.pem",  # SUSE
    "/etc/ssl/cert.pem",  # macOS
)

# No plain session may hang on a lock: it would hold up a stop, and a smart shutdown.
_SHORT_SETTINGS: Final = {"lock_timeout": "5s", "statement_timeout": "60s"}
# a slot that is created waits for transactions that run, as long as they do
_LONG_SETTINGS: Final = {
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}
_HAS_TRANSACTION_TIMEOUT: Final = 170000


def connection_string(dsn: str, **replaced: str) -> str:
    """Complete a DSN: settings in `options`, the DSN's or environment's own first.

    What prints its password is run now.
    """
    dsn, command = take_out(dsn)
    try:
        given = conninfo.conninfo_to_dict(dsn)
    except psycopg.Error:
        raise ConfigError(
            "the dsn is not a PostgreSQL connection string",
            hint="write postgresql://USER@HOST:PORT/DATABASE or host=... dbname=...",
        ) from None
    options = str(given.get("options") or os.environ.get("PGOPTIONS", ""))
    wanted = dict(_SESSION_SETTINGS)
    is_replication = "replication" in replaced
    wanted |= _LONG_SETTINGS if is_replication else _SHORT_SETTINGS
    settings = " ".join(f"-c {name}={text}" for name, text in wanted.items())
    given["options"] = f"{options} {settings}".strip()
    given["client_encoding"] = VALUE_SETTINGS["client_encoding"]  # likewise one
    given.setdefault("connect_timeout", str(_CONNECT_TIMEOUT_S))
    # without one OpenSSL asks the terminal for an encrypted key's
    given.setdefault("sslpassword", "none")
    if given.get("sslrootcert") == "system" and (bundle := _public_authorities()):
        given |= {"sslrootcert": bundle, "sslmode": "verify-full"}
    given.setdefault("application_name", "walstream")
    given.setdefault("tcp_user_timeout", "30000")
    if command:
        given["password"] = password_of(command)
    return conninfo.make_conninfo("", **{**given, **replaced})


def _public_authorities() -> str:
    """Find this machine's file of them; "" where OpenSSL's own variables lead there.

    The OpenSSL in psycopg's wheel looks into a folder of its own, which does not exist.
    """
    if os.environ.keys() & {"SSL_CERT_FILE", "SSL_CERT_DIR"}:
        return ""
    return next((file for file in _BUNDLES if Path(file).is_file()), "")


def connect(dsn: str, *, replication: bool = False) -> Connection:
    """Open a session; raise what an operator understands."""
    replaced = {"replication": "database"} if replication else {}
    for name in _SETTING_VARIABLES:
        os.environ.pop(name, None)
    given = connection_string(dsn, **replaced)
    refuse_missing(conninfo.conninfo_to_dict(given), os.environ, "dsn")
    try:
        # a walsender refuses what psycopg would prepare at the sixth use
        connection = VerboseConnection.connect(
            given, autocommit=True, prepare_threshold=None
        )
        _open.add(connection)
        _must_be_ours(connection)
        if replication and (
            connection.info.server_version >= _HAS_TRANSACTION_TIMEOUT
        ):  # not among `options`: an older server refuses what it does not know
            connection.execute("SET transaction_timeout = 0")
    except psycopg.Error as error:
        raise translate(error, "connecting to PostgreSQL") from error
    return connection


def _let_go() -> None:
    """Leave a child, which a plugin forks, no server's socket: it may outlive us.

    The server would keep session and slot. Nothing of a child may reach it, either.
    """
    if _open:
        nothing = os.open(os.devnull, os.O_RDWR)
        for connection in tuple(_open):
            with suppress(psycopg.Error):  # it is closed
                os.dup2(nothing, connection.pgconn.socket, inheritable=False)
        os.close(nothing)


os.register_at_fork(after_in_child=_let_go)


def _must_be_ours(connection: Connection) -> None:
    """Refuse a session whose settings did not arrive: a pooler may drop `options`.

    Names would be led astray there, and values be other bytes.
    """
    wanted = VALUE_SETTINGS["search_path"]
    told = connection.pgconn.parameter_status(b"search_path")  # since 18
    path = told.decode() if told else _shown_path(connection)
    if path == wanted:
        return
    connection.close()
    raise ConfigError(
        f"the session's search_path is {path}, and not {wanted}: its `options` did "
        "not take effect",
        hint=DIRECTLY,
    )


def _shown_path(connection: Connection) -> str:
    found = connection.execute("SHOW search_path").fetchone()
    return str(found[0]) if found else ""


@contextmanager
def session(dsn: str) -> Iterator[Connection]:
    """Use a short plain session: kept open, it would hold up a smart shutdown."""
    connection = connect(dsn)
    try:
        with translated("asking PostgreSQL"):
            yield connection
    finally:
        connection.close()


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Raise what an operator understands in place of an error of psycopg."""
    try:
        yield
    except psycopg.Error as error:
        raise translate(error, doing) from error


_PUBLICATION_GONE: Final = re.compile('publication ".*" does not exist')
_STREAM: Final = ("streaming", "reading slot")
_DENIED: Final = {
    "42501": PermissionLacking,
    "28000": LoginRefused,
    "28P01": LoginRefused,
}
_UNDEFINED: Final = "42704"


def translate(error: psycopg.Error, doing: str) -> WalstreamError:
    """Return what to do about an error of psycopg: a class of ours, by SQLSTATE."""
    if (state := error.sqlstate) is None:
        states, words = refusal(str(error))
        text = _one_line(words)
        if (tried := error.pgconn) is None:
            return refused(doing, text, states=states)
        role, database = tried.user.decode(), tried.db.decode()
        return refused(doing, text, role, database, states)
    text = _one_line(without_values(error) or _hidden(error, str(error)))
    if denied := _DENIED.get(state):
        return denied(
            f"{doing}: {text}", hint="grant the right to the dsn's role, then run again"
        )
    if state == _UNDEFINED and _PUBLICATION_GONE.match(text):
        return publication_lost(text)
    if doing.startswith(_STREAM) and slot_loss.tells_of_loss(error):
        return SlotLost(f"{doing}: {text}", hint=_GAP, repair=RESET)
    missing = state == slot_loss.MISSING_FILE
    hint = f"restore that file on the server; {RETRIED}" if missing else RETRIED
    return Transient(f"{doing}: {text} ({state})", hint=hint)


_GAP: Final = "the changes in between will be missing in Kafka"


def publication_lost(what: str) -> HistoryError:
    """Make the error of a publication that is gone or another one."""
    return PublicationLost(
        f"{what}: rows written since are missing from the stream",
        hint=_GAP,
        repair=RESET,
    )


_OF_DATA: Final = "22"  # class of SQLSTATE
_OF_ENCODING: Final = {"22021", "22P05"}  # what these quote are encodings' names
_QUOTED: Final = re.compile('".*"', re.DOTALL)  # a value may have quotes


def without_values(error: psycopg.Error) -> str:
    """Return the server's words, but for values of rows: errors of data quote them."""
    return _hidden(error, error.diag.message_primary or "")


def _hidden(error: psycopg.Error, text: str) -> str:
    state = error.sqlstate or ""
    quotes = state.startswith(_OF_DATA) and state not in _OF_ENCODING
    return _QUOTED.sub('"…"', text) if quotes else text


def _one_line(text: str) -> str:
    # a multi-host or failed connection says more than one line: the cause is the first
    whole, *more = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    for line in more:
        # a sentence of its own, behind a line that has no stop
        stop = "." if whole[-1].isalnum() and line[0].isupper() else ""
        whole = f"{whole}{stop} {line}"
    return whole


def readable(socket: int, timeout_s: float) -> bool:
    """Wait for the server's bytes; tell whether there are any."""
    waiting = select.poll()  # not select: it ends at descriptor 1023
    waiting.register(socket, select.POLLIN)
    return bool(waiting.poll(timeout_s * 1000))
