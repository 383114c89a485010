"""Names and texts as SQL writes them, for statements that an operator will run."""

from psycopg import sql


def name(*parts: str) -> str:
    """Quote a name, qualified by those before it."""
    return sql.Identifier(*parts).as_string(None)


def text(value: str) -> str:
    """Quote a text as a literal."""
    return sql.Literal(value).as_string(None).strip()
