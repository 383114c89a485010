"""PyMySQL asks for TLS; without any option of it, no certificate is verified.

For that it reads all certificates of this machine, which takes 25 ms of each poll, and
uses none. So it is done once.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, cast

from sqlalchemy.engine.interfaces import DBAPIConnection


def connect(
    _dialect: object,
    _record: object,
    args: Sequence[object],
    options: Mapping[str, object],
) -> DBAPIConnection:
    """Connect in the place of SQLAlchemy."""
    return _connection()(*args, **options)


@cache
def _connection() -> Callable[..., DBAPIConnection]:
    from pymysql.connections import Connection  # noqa: PLC0415 - one driver of many

    contexts: list[Any] = []

    class Light(Connection):
        def _create_ssl_ctx(self, sslp: Any) -> Any:
            if not sslp and contexts:
                return contexts[0]
            if isinstance(sslp, dict) and sslp:
                # without one OpenSSL asks the terminal for an encrypted key's
                sslp = {"password": "none", **sslp}
            made = super()._create_ssl_ctx(sslp)  # type: ignore[misc] # undeclared
            if not sslp:
                contexts.append(made)
            return made

    # PyMySQL's types are not declared to be of a DBAPI
    return cast("Callable[..., DBAPIConnection]", Light)
