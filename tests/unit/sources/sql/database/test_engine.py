"""Sessions, on SQLite: what they may do, and what becomes of an error within."""

import pickle
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import make_url, text

from tests.support.servers.sqlite import Lite
from walstream.errors import (
    CertificateRefused,
    ConfigError,
    HistoryError,
    PermissionLacking,
    Transient,
)
from walstream.sources.sql.database.engine import Database, limits, open_engine, session
from walstream.testing.servers.port import free_port


def test_database_travels_without_showing_its_url() -> None:
    database = Database("mysql+pymysql://user:secret@host/d")
    assert pickle.loads(pickle.dumps(database)) == database  # noqa: S301 - our own
    assert "secret" not in repr(database)


def test_limits_are_those_of_the_url_where_it_has_them() -> None:
    url = make_url("mysql+pymysql://host/d?read_timeout=900")
    assert limits(url) == {"connect_timeout": 10, "write_timeout": 60}
    assert limits(make_url("unheard+of://host/d")) == {}


def test_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "none.db"
    with (
        pytest.raises(ConfigError, match=f"SQLite file {path}"),
        Database(f"sqlite:///{path}").session(),
    ):
        pass
    assert not path.exists()


def test_url_with_an_option_of_the_wrong_kind_is_refused() -> None:
    with pytest.raises(ConfigError, match="is refused"):
        open_engine("sqlite:////x.db?timeout=long")


def test_session_reads_only(lite: Lite) -> None:
    lite.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    with (
        pytest.raises(PermissionLacking, match="reading the sqlite database"),
        lite.session() as connection,
    ):
        connection.execute(text("INSERT INTO t VALUES (1)"))


def test_each_statement_sees_what_is_committed(lite: Lite) -> None:
    lite.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    count = text("SELECT count(*) FROM t")
    with lite.session() as connection:
        assert connection.execute(count).scalar() == 0
        lite.execute("INSERT INTO t VALUES (1)")
        assert connection.execute(count).scalar() == 1


def test_locked_file_may_be_tried_again(lite: Lite) -> None:
    lite.execute("PRAGMA journal_mode = DELETE")
    lite.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    holder = sqlite3.connect(lite.path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    engine = open_engine(f"{lite.url}?timeout=0")
    with pytest.raises(Transient, match="locked"), session(engine) as connection:
        connection.execute(text("SELECT * FROM t"))
    holder.close()


def test_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "text.db"
    path.write_text("no database" * 100)
    with (
        pytest.raises(ConfigError, match="not a database"),
        Database(f"sqlite:///{path}").session() as connection,
    ):
        connection.execute(text("SELECT * FROM t"))


def test_error_of_nobody_in_the_database_stays_as_it_is(lite: Lite) -> None:
    for error in (ZeroDivisionError, OSError, HistoryError, sqlite3.Warning):
        with pytest.raises(error), lite.session():
            raise error("x")


def test_a_file_of_tls_that_libpq_would_pass_over_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "none.pem"
    url = f"postgresql+psycopg://u@127.0.0.1:{free_port()}/d?sslcert={file}"
    with (
        pytest.raises(CertificateRefused, match=f"sslcert of the url: {file} does"),
        Database(url).session(),
    ):
        pass
