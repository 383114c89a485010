"""The statement that lets the url's user read a table, as an administrator runs it."""

from typing import Final

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from walstream.errors import NO_REPAIR, Repair

_POSTGRES: Final = text("SELECT current_user, current_schema()")
_HIDDEN: Final = text(
    "SELECT coalesce(row_security_active(to_regclass(:name)::oid), false)"
)
_MYSQL: Final = text("SELECT CURRENT_USER(), DATABASE()")


def grant(connection: Connection, schema: str, table: str) -> Repair:
    """Write it, where the engine's grammar is known."""
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

    name = f"{_quoted(connection, schema or here or '')}.{_quoted(connection, table)}"
    if connection.dialect.name == "postgresql":
        role = _quoted(connection, user)
        return Repair(
            sql=f"GRANT USAGE ON SCHEMA {_quoted(connection, schema or here or '')}"
            f" TO {role}; GRANT SELECT ON {name} TO {role};"
        )
    return Repair(sql=f"GRANT SELECT ON {name} TO {account(user)};")


def bypass(connection: Connection, schema: str, table: str) -> Repair:
    """Write what frees the url's user of PostgreSQL from a table's policies.

    Of a view it is the owner who would need it.
    """
    name = _quoted(connection, table)
    if schema:
        name = f"{_quoted(connection, schema)}.{name}"
    try:
        with connection.begin():
            user, _ = connection.execute(_POSTGRES).one()
            if not connection.execute(_HIDDEN, {"name": name}).scalar_one():
                return NO_REPAIR
    except SQLAlchemyError:
        return NO_REPAIR
    return Repair(sql=f"ALTER ROLE {_quoted(connection, user)} BYPASSRLS;")


def _quoted(connection: Connection, name: str) -> str:
    # not SQLAlchemy's function: it doubles a % for the driver
    quote = connection.dialect.identifier_preparer.final_quote
    return f"{quote}{name.replace(quote, quote * 2)}{quote}"


def account(current_user: str) -> str:
    """Quote what CURRENT_USER() of MySQL says, for its GRANT."""
    user, _, host = current_user.rpartition("@")
    return "@".join("'" + part.replace("'", "''") + "'" for part in (user, host))
