"""What a session is opened with, and what its errors mean."""

import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from psycopg import conninfo, errors

from walstream.errors import (
    CertificateRefused,
    ConfigError,
    LoginRefused,
    PermissionLacking,
    PublicationLost,
    SlotLost,
    Transient,
    WalstreamError,
)
from walstream.postgres import connection
from walstream.postgres.connection import (
    VALUE_SETTINGS,
    connect,
    connection_string,
    publication_lost,
    translate,
)
from walstream.testing.servers.port import free_port

FORK = """
import os, socket, sys
from types import SimpleNamespace
from psycopg import OperationalError
from walstream.postgres import connection
class Session:
    def __init__(self, fileno):
        self.fileno = fileno
    @property
    def pgconn(self):
        if not self.fileno:
            raise OperationalError("the connection is closed")
        return SimpleNamespace(socket=self.fileno)
ours, server = socket.socketpair()
sessions = [Session(0), Session(ours.fileno())]
connection._open.update(sessions)
if not os.fork():
    sys.stdin.read(1)
    os._exit(0)
ours.send(b"it is open here")
ours.close()
server.settimeout(60)
print(server.recv(99), server.recv(99))
"""


def given(dsn: str, **replaced: str) -> dict[str, str]:
    made = conninfo.conninfo_to_dict(connection_string(dsn, **replaced))
    return {key: str(value) for key, value in made.items()}


def failed(text: str, state: str | None = None) -> psycopg.Error:
    """Make the error that psycopg raises: by its SQLSTATE, or without one."""
    return (
        psycopg.OperationalError(text) if state is None else errors.lookup(state)(text)
    )


def test_a_slot_is_waited_for_whatever_a_role_has_set() -> None:
    """Its creation waits for transactions that run, and each is a lock."""
    options = given("host=h dbname=d", replication="database")["options"]
    assert "-c lock_timeout=0" in options
    assert "-c lock_timeout=5s" in given("host=h dbname=d")["options"]


@pytest.mark.parametrize(
    "dsn", ["postgresql://u:p@h:1/d", "host=h port=1 dbname=d user=u password=p"]
)
def test_dsn_is_completed_in_either_spelling(dsn: str) -> None:
    found = given(dsn)
    assert (found["host"], found["port"], found["dbname"]) == ("h", "1", "d")
    assert (found["user"], found["password"]) == ("u", "p")
    assert found["application_name"] == "walstream"


def test_every_value_setting_is_pinned() -> None:
    options = given("host=h")["options"]
    for name, text in VALUE_SETTINGS.items():
        assert f"-c {name}={text}" in options
    assert "-c client_min_messages=warning" in options


def test_own_settings_come_behind_those_given_and_so_win() -> None:
    options = given("host=h options='-c DateStyle=German -c search_path=x'")["options"]
    assert options.startswith("-c DateStyle=German -c search_path=x ")
    assert options.index("DateStyle=ISO") > options.index("DateStyle=German")


def test_options_of_the_environment_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGOPTIONS", "-c search_path=y")
    assert given("host=h")["options"].startswith("-c search_path=y ")
    assert "search_path=y" not in given("host=h options='-c a.b=c'")["options"]


def test_encoding_of_the_dsn_does_not_count() -> None:
    assert given("host=h client_encoding=LATIN1")["client_encoding"] == "UTF8"


def test_what_the_dsn_says_of_the_connection_stays() -> None:
    found = given("host=h connect_timeout=9 application_name=x tcp_user_timeout=1")
    assert found["connect_timeout"] == "9"
    assert found["application_name"] == "x"
    assert found["tcp_user_timeout"] == "1"


def test_replaced_parameters_win() -> None:
    assert given("host=h", replication="database")["replication"] == "database"


def test_text_that_is_no_dsn_is_refused_without_showing_it() -> None:
    with pytest.raises(ConfigError) as refused:
        connection_string("postgresql://u:hunter2@h:port:x/ bad = = secret")
    shown = f"{refused.value!s} {refused.value.__cause__!s}"
    assert "hunter2" not in shown
    assert "secret" not in shown


@pytest.mark.parametrize(
    ("state", "text", "kind"),
    [
        ("42501", "permission denied for table t", PermissionLacking),
        ("28P01", "password authentication failed", LoginRefused),
        ("28000", "role is not permitted to log in", LoginRefused),
        ("42704", 'publication "p" does not exist', PublicationLost),
        ("42704", 'replication slot "s" does not exist', SlotLost),
        ("55000", 'can no longer get changes from replication slot "s"', SlotLost),
        ("58P01", "requested WAL segment 02 has already been removed", SlotLost),
        ("55006", "replication slot is active for PID 1", Transient),
        ("57P01", "terminating connection due to administrator command", Transient),
        ("57P03", "the database system is starting up", Transient),
        ("53300", "too many clients already", Transient),
        ("40001", "could not serialize access", Transient),
        ("XX000", "something unexpected", Transient),
    ],
)
def test_sqlstate_decides_what_an_error_means(
    state: str, text: str, kind: type[WalstreamError]
) -> None:
    found = translate(failed(text, state), "streaming")
    assert type(found) is kind

    if kind is not PublicationLost:
        assert str(found).startswith("streaming: ")
    assert found.hint


def test_what_a_plain_session_meets_says_nothing_of_the_slot() -> None:
    found = translate(failed("recovery is in progress", "55000"), "asking PostgreSQL")
    assert type(found) is Transient


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('FATAL:  password authentication failed for user "u"', LoginRefused),
        ("fe_sendauth: no password supplied", LoginRefused),
        ("FATAL:  no pg_hba.conf entry for host", LoginRefused),
        ('FATAL:  role "u" does not exist', LoginRefused),
        ('FATAL:  role "u" is not permitted to log in', LoginRefused),
        ('FATAL:  permission denied for database "d"', PermissionLacking),
        ("FATAL:  permission denied to start WAL sender", PermissionLacking),
        ("FATAL:  must be superuser or replication role to start", PermissionLacking),
        ('FATAL:  database "d" does not exist', ConfigError),
        ("server does not support SSL, but SSL was required", ConfigError),
        ("SSL error: certificate verify failed", CertificateRefused),
        ("connection refused", Transient),
        ("timeout expired", Transient),
        ("could not translate host name", Transient),
        ("FATAL:  the database system is starting up", Transient),
        ("FATAL:  the database system is shutting down", Transient),
        ("server closed the connection unexpectedly", Transient),
    ],
)
def test_failed_connection_is_judged_by_its_text(
    text: str, kind: type[WalstreamError]
) -> None:
    assert type(translate(failed(text), "connecting")) is kind


def test_values_of_rows_are_not_told() -> None:
    said = 'invalid input syntax for type integer: "a "secret""'
    found = translate(failed(said, "22P02"), "reading")
    assert found.args[0].endswith('for type integer: "…" (22P02)')
    other = translate(failed('relation "t" is gone', "XX000"), "reading")
    assert '"t"' in str(other)


def test_error_of_several_lines_becomes_one() -> None:
    found = translate(failed("first\n\tsecond\n"), "connecting")
    assert found.args[0] == "connecting: first second"


def test_lost_publication_is_a_gap() -> None:
    found = publication_lost('skipped loading publication "p"')
    assert isinstance(found, PublicationLost)
    assert found.exit_code == 3
    assert found.repair.command == "walstream positions reset {source}"


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ("a failed: refused\n\tIs the server running?\n", "a failed: refused. Is the"),
        ("a failed: refused\nb failed: refused", "a failed: refused b failed"),
        ("refused.\nAgain", "refused. Again"),
        ("", ""),
    ],
)
def test_lines_of_the_server_become_sentences(said: str, line: str) -> None:
    found = translate(psycopg.OperationalError(said), "connecting")
    assert str(found.args[0]).startswith(f"connecting: {line}")


def test_public_authorities_are_those_of_this_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Psycopg's wheel has an OpenSSL whose folder of them no machine has."""
    bundle = tmp_path / "bundle.pem"
    monkeypatch.setattr(connection, "_BUNDLES", (str(tmp_path / "none"), str(bundle)))
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    assert given("host=h sslrootcert=system")["sslrootcert"] == "system"
    bundle.touch()
    found = given("host=h sslrootcert=system")
    assert found["sslrootcert"] == str(bundle)
    assert found["sslmode"] == "verify-full"
    assert given("host=h sslrootcert=/x")["sslrootcert"] == "/x"
    monkeypatch.setenv("SSL_CERT_FILE", "/y")
    assert given("host=h sslrootcert=system")["sslrootcert"] == "system"


@pytest.mark.parametrize("name", ["sslcert", "sslcrl"])
def test_a_file_that_libpq_would_pass_over_is_refused_before_it_connects(
    name: str, tmp_path: Path
) -> None:
    """Else a server would refuse for want of a certificate, or nobody would."""
    file = tmp_path / "none.pem"
    dsn = f"host=127.0.0.1 port={free_port()} sslmode=verify-full {name}={file}"
    with pytest.raises(CertificateRefused) as refused:
        connect(dsn)
    assert f"{name} of the dsn: {file} does not exist" in str(refused.value)


def test_no_name_of_ours_is_looked_up_where_an_application_may_create_one() -> None:
    options = given("host=h", replication="database")["options"]
    assert "-c search_path=pg_catalog,pg_temp" in options
    # a policy that hides a row is an error, and runs nobody's function
    assert "-c row_security=off" in options


def test_a_forked_child_keeps_no_session_open() -> None:
    """A server frees a slot when the last socket of its session is closed."""
    with subprocess.Popen(
        [sys.executable, "-c", FORK],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "b'it is open here' b''\n"
