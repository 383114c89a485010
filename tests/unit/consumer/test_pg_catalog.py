"""The consumer's SQL: each name of PostgreSQL's own says that it is."""

# ruff: noqa: S608 - SQL of constants

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import consumer
from consumer import pg_catalog
from consumer.pg_catalog import ABOVE, IS, JOINED, unnest

# asked where the path is pinned, by an operator, or of SQLite
PINNED: Final = {
    "state/schema.py": {"reset"},
    "mirror/table_shape.py": {
        *("_COLUMNS", "_KEY", "_NOT_OF_EXTENSION", "_HAZARDS", "_CASCADES", "_STRICT"),
    },
    "whole/group_state.py": {"pass_by", "forget"},
    "whole/pile.py": {"_ADD", "_READ", "_HAS", "_COUNT", "_FORGET"},
    "mirror/position_store.py": {"_COLUMNS"},
    "mirror/envelope_fit.py": {"_TYPES"},
}
_SQL: Final = re.compile(
    r"\b(SELECT|INSERT INTO|UPDATE|DELETE FROM|WHERE|VALUES|CREATE TABLE|CAST)\b"
)
_FOREIGN: Final = (  # what is no operator or function, in this order
    r"'[^']*'",
    r"OPERATOR\(pg_catalog\.\S+?\)",
    r"%\(\w+\)s|%s|%%|\{\w*\}",
    r"(?<=\()\*(?=\))|SELECT \*|=>",
    r"(?:\bSET|,)\s+\w+ =",  # an assignment
    r"-\d",
)
_WRONG: Final = re.compile(
    r"[-+*/<>=!~@#^&|]+"
    r"|(?<![.\w])(?!(?:coalesce|greatest|least|numeric)\()[a-z]\w*\("
    r"|::(?!pg_catalog\.|bigint\b|boolean\b|numeric\b|integer\b)\w+"
    r"|\b(?:LIKE|BETWEEN|NULLIF|DISTINCT FROM)\b|\b(?:IN|USING) ?\("
)


def wrong(text: str) -> list[str]:
    for pattern in _FOREIGN:
        text = re.sub(pattern, " ", text)
    return _WRONG.findall(text)


def texts(path: Path, pinned: set[str]) -> Iterator[str]:
    """Give the strings of a module that are SQL, with own's names in their places."""
    tree = ast.parse(path.read_text("utf-8"))
    left: list[ast.AST] = [*tree.body]
    while left:
        node = left.pop()
        match node:
            case ast.AnnAssign(target=ast.Name(id=name)) if name in pinned:
                continue
            case ast.FunctionDef(name=name) if name in pinned:
                continue
            case ast.Expr(value=ast.Constant()):
                continue  # a docstring
            case ast.JoinedStr(values=values):
                text = "".join(map(_part, values))
            case ast.Constant(value=str(text)):
                pass
            case _:
                left += ast.iter_child_nodes(node)
                continue
        if _SQL.search(text):
            yield text


def _part(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.FormattedValue(value=ast.Name(id=name)):
            return str(getattr(pg_catalog, name, " "))
        case _:
            return " "


_FOLDER: Final = Path(consumer.__file__).parent


@pytest.mark.parametrize(
    "path",
    sorted(_FOLDER.rglob("*.py")),
    ids=lambda path: str(path.relative_to(_FOLDER)),
)
def test_no_name_is_left_to_the_applications_path(path: Path) -> None:
    pinned = PINNED.get(str(path.relative_to(_FOLDER)), set())
    for text in texts(path, pinned):
        assert not wrong(text), text


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM t WHERE a = %s",
        "SELECT count(*) FROM t",
        "SELECT a::text FROM t",
        "SELECT a FROM t WHERE a LIKE 'x%%'",
        "SELECT a FROM t JOIN u USING (a)",
        "SELECT a FROM t WHERE a IN (1, 2)",
        f"UPDATE t SET a = 1 WHERE b {IS} 1 AND c < 2",
    ],
)
def test_a_name_that_is_left_to_it_is_seen(text: str) -> None:
    assert wrong(text)


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT pg_catalog.count(*), coalesce(a, -1) FROM t WHERE a {ABOVE} %s",
        f"UPDATE t SET a = b, c = ('-' {JOINED} d) WHERE x::pg_catalog.text {IS} 'a=b'",
        f"SELECT * FROM {unnest('%s::bigint[]', '%s::boolean[]')} AS w (a, b)",
    ],
)
def test_what_names_pg_catalog_passes(text: str) -> None:
    assert not wrong(text)
