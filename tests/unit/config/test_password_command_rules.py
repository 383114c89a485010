"""A password_command beside a connection string."""

from collections.abc import Callable

import pytest

from walstream.config import Config, mask
from walstream.config.password_command_dsn import take_out

COMMAND = 'password_command = ["token", "--for", "app"]'
SQL = """
[sources.old]
kind = "sql"
url = "{url}"
{command}
sinks = ["log"]
tables = {{ t = {{ primary_key = "id" }} }}
[sinks.log]
kind = "log"
format = "row"
"""


def with_command(valid: str, dsn: str = "host=/run/postgresql dbname=shop") -> str:
    line = 'dsn = "host=/run/postgresql dbname=shop"'
    return valid.replace(line, f'dsn = "{dsn}"\n{COMMAND}')


def test_it_goes_where_the_connection_string_goes_and_is_not_shown_in_it(
    load_text: Callable[..., Config], valid: str
) -> None:
    config = load_text(with_command(valid))
    (source,) = config.postgres_sources.values()
    words = ["token", "--for", "app"]
    assert take_out(source.dsn) == ("host=/run/postgresql dbname=shop", words)
    again = Config.from_json(config.to_json()).postgres_sources["app"]
    assert again.dsn == source.dsn
    shown = str(mask(config))
    assert "walstream_password_command" not in shown
    assert "'token'" in shown or '"token"' in shown  # it names no secret
    assert not config.secrets.values


@pytest.mark.parametrize(
    "dsn",
    ["host=/run/postgresql password=word", "postgresql://app:word@localhost/shop"],
)
def test_two_passwords_are_refused(
    complaint: Callable[..., str], valid: str, dsn: str
) -> None:
    said = complaint(with_command(valid, dsn))
    assert "sources.app.dsn: has a password, and password_command" in said


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("mysql+pymysql://app:word@localhost/shop", "has a password"),
        ("mssql+pyodbc://app@localhost/shop?driver=x", "cannot be used with ODBC"),
    ],
)
def test_what_a_driver_cannot_take_is_refused(
    complaint: Callable[..., str], url: str, text: str
) -> None:
    assert text in complaint(SQL.format(url=url, command=COMMAND))


def test_a_url_carries_it_too(load_text: Callable[..., Config]) -> None:
    url = "mysql+pymysql://app@localhost/shop?charset=utf8mb4"
    config = load_text(SQL.format(url=url, command=COMMAND))
    assert take_out(config.sql_source("old").url) == (url, ["token", "--for", "app"])


def test_a_command_without_a_name_is_refused(
    complaint: Callable[..., str], valid: str
) -> None:
    said = complaint(with_command(valid).replace('"token", ', '"", '))
    assert "has no command" in said
