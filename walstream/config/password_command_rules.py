"""Rules for a password_command beside a connection string."""

from collections.abc import Iterator
from typing import Final

from walstream.config import dsn, engine_url
from walstream.config.password_command_dsn import take_out
from walstream.config.problem import Problem
from walstream.config.secret import mask_value
from walstream.config.source import PostgresSource, SqlSource

_TWO: Final = "has a password, and password_command prints another: leave one out"


def check_login(name: str, source: PostgresSource | SqlSource) -> Iterator[Problem]:
    """Refuse two passwords, and drivers that cannot be given one at each connection."""
    if not source.password_command:
        return
    if isinstance(source, PostgresSource):
        if dsn.parse(source.dsn).get("password"):
            yield Problem(("sources", name, "dsn"), _TWO)
        return
    url, _ = take_out(source.url)
    if mask_value("url", url) != url:
        yield Problem(("sources", name, "url"), _TWO)
    server = engine_url.parse(url)
    if server.driver == "pyodbc" or "odbc_connect" in server.query:
        yield Problem(
            ("sources", name, "password_command"),
            "cannot be used with ODBC, which takes its password in one text: use a"
            " driver of the database's own",
        )
