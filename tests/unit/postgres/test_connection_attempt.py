"""Refusals of a server in any language, as libpq really reads them."""

import psycopg
import pytest

from tests.support.servers.refusing_postgres import refusing
from walstream.errors import (
    ConfigError,
    LoginRefused,
    PermissionLacking,
    Transient,
    WalstreamError,
)
from walstream.postgres import connection_attempt
from walstream.postgres.connection import connect
from walstream.postgres.connection_attempt import VerboseConnection, refusal

GERMAN = "Passwort-Authentifizierung für Benutzer »u« fehlgeschlagen"


@pytest.mark.parametrize(
    ("severity", "state", "words", "kind"),
    [
        ("FATAL", "28P01", GERMAN, LoginRefused),
        ("ВАЖНО", "28P01", "пользователь не прошёл проверку", LoginRefused),
        ("致命错误", "28000", '角色"u" 不存在', LoginRefused),
        ("FATAL", "3D000", "la base de données « d » n'existe pas", ConfigError),
        ("FATAL", "42501", "keine Berechtigung für Datenbank »d«", PermissionLacking),
        ("FATAL", "57P03", "das Datenbanksystem startet", Transient),
        ("FATAL", "53300", "zu viele Verbindungen", Transient),
        ("FATAL", "28P01", 'password authentication failed for user "u"', LoginRefused),
    ],
)
@pytest.mark.parametrize("mode", ["disable", "prefer"])
@pytest.mark.parametrize("replication", [False, True], ids=["plain", "walsender"])
def test_sqlstate_says_what_a_refusal_means_in_any_language(  # noqa: PLR0913
    severity: str,
    state: str,
    words: str,
    kind: type[WalstreamError],
    mode: str,
    *,
    replication: bool,
) -> None:
    with refusing(severity, state, words) as port:
        dsn = f"host=127.0.0.1 port={port} user=u dbname=d sslmode={mode}"
        with pytest.raises(WalstreamError) as failed:
            connect(dsn, replication=replication)
    assert type(failed.value) is kind
    assert f"{severity}:  {words}" in str(failed.value)
    assert state not in str(failed.value)
    assert "auth.c" not in str(failed.value)


def test_of_several_hosts_one_that_starts_is_waited_for() -> None:
    with (
        refusing("FATAL", "28P01", GERMAN) as one,
        refusing("FATAL", "57P03", "das Datenbanksystem startet") as other,
        refusing("FATAL", "28P01", GERMAN) as third,
    ):
        rest = "user=u dbname=d sslmode=disable"
        with pytest.raises(Transient):
            connect(f"host=127.0.0.1,127.0.0.1 port={one},{other} {rest}")
        with pytest.raises(LoginRefused):
            connect(f"host=127.0.0.1,127.0.0.1 port={one},{third} {rest}")


def test_the_statement_for_a_right_that_lacks_names_role_and_database() -> None:
    with refusing("FATAL", "42501", "keine Berechtigung") as port:
        dsn = f"host=127.0.0.1 port={port} user=Wal dbname=d sslmode=disable"
        with pytest.raises(PermissionLacking) as failed:
            connect(dsn)
    assert failed.value.repair.sql == (
        'GRANT CONNECT ON DATABASE "d" TO "Wal"; ALTER ROLE "Wal" REPLICATION;'
    )


def test_without_libpqs_call_the_words_are_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection_attempt, "_setter", lambda: None)
    with refusing("FATAL", "28P01", GERMAN) as port:
        dsn = f"host=127.0.0.1 port={port} user=u dbname=d sslmode=disable"
        with pytest.raises(psycopg.OperationalError, match=GERMAN) as failed:
            VerboseConnection.connect(dsn)
    assert refusal(str(failed.value)) == ((), str(failed.value))


def test_what_libpq_itself_says_is_left_as_it_is() -> None:
    said = "connection failed: timeout expired\nIs the server running: 28P01: or not?"
    assert refusal(said) == ((), said)
