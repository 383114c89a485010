"""Which driver a URL means, and what is said where it is missing."""

import sys

import pytest
from sqlalchemy import make_url

from walstream.errors import ConfigError
from walstream.sources.sql.database.driver import place, resolve


@pytest.mark.parametrize(
    ("url", "taken"),
    [
        ("postgresql://h/d", "postgresql+psycopg"),
        ("postgres://h/d", "postgresql+psycopg"),
        ("postgresql+psycopg2://h/d", "postgresql+psycopg2"),
        ("mysql://h/d", "mysql+pymysql"),
        ("mariadb://h/d", "mariadb+pymysql"),
        ("sqlite:///d", "sqlite"),
    ],
)
def test_url_without_a_driver_takes_one_that_is_installed(url: str, taken: str) -> None:
    assert resolve(url).drivername == taken


@pytest.mark.parametrize(
    ("url", "module", "command"),
    [
        ("mssql+pyodbc://h/d", "pyodbc", "pip install pyodbc"),
        ("mysql+pymysql://h/d", "pymysql", r"pip install 'pymysql\[rsa\]'"),
        ("mysql+mysqldb://h/d", "MySQLdb", "pip install mysqlclient"),
        ("postgresql+psycopg2://h/d", "psycopg2", "pip install psycopg2-binary"),
        ("oracle+oracledb://h/d", "oracledb", "pip install oracledb"),
    ],
)
def test_missing_driver_is_named_by_the_package_that_brings_it(
    monkeypatch: pytest.MonkeyPatch, url: str, module: str, command: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=f"is missing: {command}$"):
        resolve(url)


def test_nothing_installed_names_the_driver_that_is_the_easiest_to_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("pymysql", "MySQLdb"):
        monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setattr(
        "walstream.sources.sql.database.driver.find_spec", lambda _: None
    )
    with pytest.raises(ConfigError, match=r"pip install 'pymysql\[rsa\]'"):
        resolve("mysql://h/d")


def test_engine_of_another_package_is_named_with_it() -> None:
    with pytest.raises(ConfigError, match="pip install snowflake-sqlalchemy"):
        resolve("snowflake://user@account/d")


def test_unknown_engine_and_driver_are_named() -> None:
    with pytest.raises(ConfigError, match=r"knows no nosuch://"):
        resolve("nosuch://h/d")
    with pytest.raises(ConfigError, match=r"knows no mysql\+nosuch://"):
        resolve("mysql+nosuch://h/d")


def test_driver_for_asynchronous_programs_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"asyncmy is for asyncio only"):
        resolve("mysql+asyncmy://h/d")


@pytest.mark.parametrize("url", ["", "secret", "mysql://u:secret@h:port/d"])
def test_what_is_no_url_is_refused_without_a_word_of_it(url: str) -> None:
    with pytest.raises(ConfigError, match="not a SQLAlchemy URL") as caught:
        resolve(url)
    assert "secret" not in str(caught.value)


def test_place_holds_neither_user_nor_secret() -> None:
    url = make_url("mysql+pymysql://user:secret@host:3306/shop?charset=utf8mb4")
    assert place(url) == "the mysql database shop at host:3306"
    assert place(make_url("sqlite:////x.db")) == "the sqlite database /x.db"
