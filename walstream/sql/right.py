"""The statement that lets the url's user read a table, as an administrator runs it."""

from typing import Final

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from walstream.errors import NO_REPAIR, Repair

_POSTGRES: Final = text("SELECT current_user, current_schema()")
_MYSQL: Final = text("SELECT CURRENT_USER(), DATABASE()")


def grant(connection: Connection, schema: str, table: str) -> Repair:
    """Write it, where the engine's grammar is known."""
    prepared = connection.dialect.identifier_preparer
    statement = {"postgresql": _POSTGRES, "mysql": _MYSQL, "mariadb": _MYSQL}.get(
        connection.dialect.name
    )
    if statement is None:
        return NO_REPAIR
    try:
        with connection.begin():
            user, here = connection.execute(statement).one()
    except SQLAlchemyError:
        return NO_REPAIR

    def quoted(name: str) -> str:
        # not SQLAlchemy's function: it doubles a % for the driver
        quote = prepared.final_quote
        return f"{quote}{name.replace(quote, quote * 2)}{quote}"

    schema = schema or here or ""
    if connection.dialect.name == "postgresql":
        return Repair(
            sql=f"GRANT USAGE ON SCHEMA {quoted(schema)} TO {quoted(user)};"
            f" GRANT SELECT ON {quoted(schema)}.{quoted(table)} TO {quoted(user)};"
        )
    return Repair(
        sql=f"GRANT SELECT ON {quoted(schema)}.{quoted(table)} TO {account(user)};"
    )


def account(current_user: str) -> str:
    """Quote what CURRENT_USER() of MySQL says, for its GRANT."""
    user, _, host = current_user.rpartition("@")
    return "@".join("'" + part.replace("'", "''") + "'" for part in (user, host))
