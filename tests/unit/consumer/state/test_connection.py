"""Which errors of PostgreSQL pass by."""

from types import SimpleNamespace
from typing import Any, cast

import psycopg
import pytest
from psycopg import IsolationLevel, errors
from psycopg.conninfo import conninfo_to_dict

from consumer.state.connection import COMMITTED, connect, passes, refusal, was_committed
from walstream.errors import ConfigError

_OPEN = cast("psycopg.Connection[Any]", type("Open", (), {"broken": False})())
_BROKEN = cast("psycopg.Connection[Any]", type("Broken", (), {"broken": True})())


@pytest.mark.parametrize(
    ("error", "passing"),
    [
        (errors.SerializationFailure(), True),
        (errors.DeadlockDetected(), True),
        (errors.AdminShutdown(), True),
        (errors.ConnectionFailure(), True),
        (errors.LockNotAvailable(), True),
        (errors.DiskFull(), True),
        (errors.OutOfMemory(), True),
        (errors.ReadOnlySqlTransaction(), True),
        (errors.QueryCanceled(), True),
        (errors.UniqueViolation(), False),
        (errors.UndefinedTable(), False),
        (ValueError(), False),
    ],
)
def test_what_the_same_transaction_may_survive_passes(
    error: Exception, *, passing: bool
) -> None:
    assert passes(error, _OPEN) is passing
    assert passes(error, _BROKEN)


def test_the_cause_decides_where_a_handler_wrapped_it() -> None:
    wrapped = RuntimeError()
    wrapped.__cause__ = errors.DeadlockDetected()
    assert passes(wrapped, _OPEN)


def test_causes_that_lead_back_to_themselves_end() -> None:
    alone, first, second = RuntimeError(), RuntimeError(), RuntimeError()
    alone.__cause__ = alone
    first.__cause__, second.__cause__ = second, first
    assert not passes(alone, _OPEN)
    assert not passes(first, _OPEN)


@pytest.mark.parametrize(
    ("dsn", "timeout"),
    [
        ("host=h", "30000"),
        ("host=h tcp_user_timeout=1", "1"),
        ("postgresql://h/db?tcp_user_timeout=1", "1"),
    ],
)
def test_a_server_that_vanished_with_data_under_way_is_noticed(
    monkeypatch: pytest.MonkeyPatch, dsn: str, timeout: str
) -> None:
    """No keepalive is sent while the kernel sends that data again, for 15 minutes."""
    given: dict[str, Any] = {}
    monkeypatch.setattr(
        psycopg, "connect", lambda whole, **_: given.update(conninfo_to_dict(whole))
    )
    connect(dsn, "g")
    assert given["tcp_user_timeout"] == timeout


@pytest.mark.parametrize("dsn", ["hunter2", "password='hunter2", "hunter2=x"])
def test_a_dsn_that_cannot_be_read_is_not_shown(dsn: str) -> None:
    with pytest.raises(ConfigError) as refused:
        connect(dsn, "g")
    assert "hunter2" not in str(refused.value)
    assert refused.value.__suppress_context__


def test_a_password_with_an_at_sign_is_not_shown() -> None:
    with pytest.raises(psycopg.OperationalError) as refused:
        connect("postgresql://u:se@hunter2@127.0.0.1:1/db", "g")
    assert "hunter2" in str(refused.value)
    assert "hunter2" not in refusal(refused.value)
    assert "%40" in refusal(refused.value)


def test_a_session_begins_outside_of_a_transaction_and_says_who_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: dict[str, Any] = {}
    made = object()

    def opened(whole: str, **options: Any) -> object:
        given.update(conninfo_to_dict(whole), **options)
        return made

    monkeypatch.setattr(psycopg, "connect", opened)
    assert connect("host=h keepalives_idle=7", "g" * 80) is made
    assert given["autocommit"] is True
    assert given["client_encoding"] == "utf8"
    assert given["keepalives_idle"] == "7"
    assert given["fallback_application_name"] == "consumer " + "g" * 54
    connect("host=h", "g")
    idle, interval, count = (
        int(given[f"keepalives_{name}"]) for name in ("idle", "interval", "count")
    )
    # a server that vanished is noticed within a minute
    assert 30 < idle + interval * count <= 60


def test_words_of_a_server_that_cannot_be_reached_are_shown() -> None:
    assert refusal(psycopg.OperationalError("no such host: h")) == "no such host: h"


@pytest.mark.parametrize("error", [errors.ConnectionException(), psycopg.Error()])
def test_a_class_of_errors_passes_and_one_without_a_code_does_not(
    error: psycopg.Error,
) -> None:
    assert passes(error, _OPEN) is isinstance(error, errors.ConnectionException)


def test_a_session_has_the_isolation_that_is_wished(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = SimpleNamespace(isolation_level=None)
    monkeypatch.setattr(psycopg, "connect", lambda *_, **__: made)
    connect("host=h", "g")
    assert made.isolation_level is None
    connect("host=h", "g", IsolationLevel.SERIALIZABLE)
    assert made.isolation_level is IsolationLevel.SERIALIZABLE


@pytest.mark.parametrize(
    ("answer", "committed"),
    [((True,), True), ((False,), False), ((None,), False), (None, False)],
)
def test_a_transaction_was_committed_where_the_server_says_so(
    answer: tuple[object] | None, *, committed: bool
) -> None:
    def run(tx: object, statement: str, values: tuple[str]) -> Any:
        assert (tx, statement, values) == (session, COMMITTED, ("7",))
        return SimpleNamespace(fetchone=lambda: answer)

    session = cast("Any", SimpleNamespace(closed=False))
    assert was_committed(run, session, "7") is committed


@pytest.mark.parametrize("closed", [False, True])
def test_of_a_session_that_is_lost_nothing_is_known(*, closed: bool) -> None:
    """Nobody is asked where it is closed."""

    def run(*_: object) -> Any:
        assert not closed
        raise psycopg.OperationalError

    assert was_committed(run, cast("Any", SimpleNamespace(closed=closed)), "7") is False
