"""What is compiled has no subclass that is not: mypyc refuses to make one of it."""

import ast
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
OPEN = "allow_interpreted_subclasses"


def compiled() -> set[str]:
    document = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wheel = document["tool"]["hatch"]["build"]["targets"]["wheel"]
    return set(wheel["hooks"]["mypyc"]["include"])


def classes(path: Path) -> list[ast.ClassDef]:
    tree = ast.parse(path.read_text("utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


def refused(files: dict[str, list[ast.ClassDef]], listed: set[str]) -> list[str]:
    """Name the classes that have a base which is compiled, and are not."""
    closed = {
        one.name: file
        for file, found in files.items()
        for one in found
        if file in listed
        and not any(OPEN in ast.unparse(d) for d in one.decorator_list)
    }
    return [
        f"{file}: {one.name} derives from {name} of {closed[name]}"
        for file, found in files.items()
        if file not in listed
        for one in found
        for base in one.bases
        if (name := ast.unparse(base).partition("[")[0]) in closed
    ]


def test_no_class_derives_from_one_that_is_compiled() -> None:
    listed = compiled()
    files = {
        str(path.relative_to(ROOT)): classes(path)
        for path in sorted((ROOT / "walstream").rglob("*.py"))
    }
    assert listed <= {*files, *(one for one in listed if not one.startswith("wal"))}
    assert refused(files, listed) == []


def test_one_that_does_is_named() -> None:
    """So was a count of records: no backfill of the compiled form could begin."""
    base, derived = (ast.parse(text).body for text in ("class A: 0", "class B(A): 0"))
    files = {"a.py": base, "b.py": derived}
    assert refused(files, {"a.py"}) == ["b.py: B derives from A of a.py"]  # type: ignore[arg-type]
    assert refused(files, {"a.py", "b.py"}) == []  # type: ignore[arg-type]
