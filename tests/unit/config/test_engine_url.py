"""URLs of SQLAlchemy engines, read as SQLAlchemy reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import make_url

from walstream.config.engine_url import advice, parse, remote_hosts, verifies

URLS = [
    "sqlite://",
    "sqlite:///x.db",
    "sqlite:////tmp/a b?c.db",
    "mysql://u:p@h:3306/d?a=1&b=&c=x%20y",
    "mysql+pymysql://u:p%40ss@[::1]:1/d",
    "mysql://h",
    "mysql://u@/d?unix_socket=/run/m.sock",
    "postgresql+psycopg://u:a/b:c?d@h/d?host=x:1&host=y",
    "mssql+pyodbc:///?odbc_connect=Driver%3Dx",
    "mysql://:@h",
    "mysql://u@v@h/d",
]


def reads_alike(url: str) -> None:
    try:
        engine = parse(url)
    except ValueError:
        return  # it is stricter
    theirs = make_url(url)
    name = f"{engine.dialect}{engine.driver and '+'}{engine.driver}"
    assert (name, engine.host) == (theirs.drivername, theirs.host or "")
    for key, value in theirs.query.items():
        together = value if isinstance(value, str) else ",".join(value)
        assert engine.query[key] == together


@pytest.mark.parametrize("url", URLS)
def test_an_url_reads_as_sqlalchemy_reads_it(url: str) -> None:
    parse(url)
    reads_alike(url)


@given(st.from_regex(r"[a-z]+(\+[a-z]+)?://[a-c:@/?\[\]=&%0-9]{0,20}", fullmatch=True))
def test_any_url_reads_as_sqlalchemy_reads_it_or_is_refused(url: str) -> None:
    reads_alike(url)


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("", "is not a URL"),
        ("h/d", "is not a URL"),
        ("my-sql://h/d", "is not a URL"),
        ("mysql://u:pa@ss@h/d", "write @ as %40"),
        ("mysql://u:pw@h:port/d", "no number as its port"),
        ("mysql://u:pw@h:/d", "no number as its port"),
        ("mysql://u:pw@[::1]x/d", "is not a URL"),
    ],
)
def test_what_would_be_misread_is_refused_without_its_words(
    url: str, wanted: str
) -> None:
    with pytest.raises(ValueError, match=wanted) as refused:
        parse(url)
    assert "ss@h" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "hosts"),
    [
        ("sqlite:///x", []),
        ("duckdb:///x", []),
        ("mysql:///d", []),
        ("mysql://localhost/d", []),
        ("mysql://[::1]/d", []),
        ("mysql://db/d", ["db"]),
        ("mysql://10.0.0.1:3306/d", ["10.0.0.1"]),
        ("mysql://db/d?unix_socket=/run/m.sock", []),
        ("oracle://db/?unix_socket=/run/m.sock", ["db"]),
        ("postgresql://db/d", ["db"]),
        ("postgresql:///d", []),
        ("postgresql://localhost/d?host=db", ["db"]),
        ("postgresql:///d?host=a:1&host=/run&host=b", ["a", "b"]),
        ("postgresql://?host=::1", []),
        ("postgresql://localhost/d?hostaddr=10.0.0.1", ["10.0.0.1"]),
        ("postgresql:///?service=x", None),
        ("mssql+pyodbc:///?odbc_connect=Driver%3Dx%3BServer%3Dtcp:db,1433", ["db"]),
        ("mssql+pyodbc:///?odbc_connect=SERVER%3D127.0.0.1%3BUID%3Du", []),
        ("mssql+pyodbc:///?odbc_connect=DSN%3Dx", None),
        ("mssql+pyodbc://u:p@mydsn", ["mydsn"]),
    ],
)
def test_hosts_that_are_not_this_machine(url: str, hosts: list[str] | None) -> None:
    assert remote_hosts(parse(url), {}) == hosts


@pytest.mark.parametrize(
    ("url", "verified"),
    [
        ("postgresql://db/d", False),
        ("postgresql+psycopg2://db/d?sslmode=verify-full", True),
        ("postgresql://db/d?sslmode=require", False),
        ("postgresql://db/d?sslmode=verify-full&sslmode=disable", False),
        ("mysql+pymysql://db/d", False),
        ("mysql+pymysql://db/d?ssl_ca=", False),
        ("mysql+pymysql://db/d?ssl_ca=x", True),
        ("mariadb+pymysql://db/d?ssl_capath=x&ssl_check_hostname=true", True),
        ("mysql+pymysql://db/d?ssl_ca=x&ssl_check_hostname=false", False),
        ("mysql+pymysql://db/d?ssl_ca=x&ssl_verify_cert=true", False),
        ("mysql+pymysql://db/d?ssl_ca=x&ssl_verify_identity=true", False),
        ("mysql+pymysql://db/d?ssl_ca=x&ssl_disabled=false", False),
        ("mysql://db/d?ssl_ca=x", False),
        ("mariadb+mysqldb://db/d?ssl_mode=VERIFY_IDENTITY", True),
        ("mysql+mysqlconnector://db/d?ssl_ca=x&ssl_verify_identity=true", False),
        ("mssql+pyodbc://db/d?Encrypt=yes", True),
        ("mssql://db/d?Encrypt=Yes&TrustServerCertificate=Yes", False),
        ("mssql://db/d?Encrypt=no", False),
        ("mssql://?odbc_connect=Server%3Ddb%3Bencrypt%3Dstrict", True),
        ("mssql://?odbc_connect=Server%3Ddb%3BTrustServerCertificate%3Dyes", False),
        ("oracle://db/d?sslmode=verify-full", False),
    ],
)
def test_what_counts_as_verified(url: str, verified: bool) -> None:
    assert verifies(parse(url), {}) == verified


def test_libpqs_environment_counts_for_postgresql_alone() -> None:
    environment = {"PGHOST": "db", "PGSSLMODE": "verify-full"}
    assert remote_hosts(parse("postgresql:///d"), environment) == ["db"]
    assert verifies(parse("postgresql:///d"), environment)
    assert not verifies(parse("postgresql://?sslmode=prefer"), environment)
    assert remote_hosts(parse("mysql:///d"), environment) == []
    assert not verifies(parse("mysql://db/d"), environment)


def test_advice_is_given_for_drivers_that_are_known() -> None:
    assert "ssl_ca" in advice(parse("mysql+pymysql://db/d"))
    assert advice(parse("mysql+asyncmy://db/d")) == ""
    assert advice(parse("snowflake://account")) == ""
