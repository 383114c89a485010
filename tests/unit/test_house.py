"""The rules of docs/architecture.md that no linter holds."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PACKAGES: Final = {
    *("admin", "cli", "config", "formats", "kafka", "pipeline", "postgres", "records"),
    *("service", "sources", "spark", "state", "status", "telemetry", "testing"),
}
LOOSE: Final = {"errors", "finding", "lsn", "op", "plugins", "row"}
NOUNS: Final = {  # that end like a participle
    "detached": "the word of detach_after, of status and of the log",
    "encoding": "a noun",
    "fencing": "Kafka's word for it",
    "finding": "what `check` prints",
    "numbering": "a noun",
    "pacing": "a noun",
    "quoting": "PostgreSQL's word for it",
    "testing": "as unittest, numpy and others call it",
    "topic_finding": "a finding",
}
OPENERS: Final = {"Tell", "Give", "Say", "Hear", "Have"}


def modules(*packages: str) -> Iterator[tuple[Path, ast.Module]]:
    for package in packages or ("walstream", "consumer"):
        for path in (ROOT / package).rglob("*.py"):
            yield path.relative_to(ROOT), ast.parse(path.read_text("utf-8"))


def test_the_top_level_is_a_closed_list() -> None:
    found = [one for one in (ROOT / "walstream").iterdir() if one.name[0] not in "_."]
    assert {one.name for one in found if one.is_dir()} == PACKAGES
    assert {one.stem for one in found if one.suffix == ".py"} == LOOSE


def test_a_module_is_named_by_a_noun() -> None:
    names = {
        part
        for path, _ in modules()
        for part in (*path.parent.parts, path.stem)
        if part.endswith(("ing", "ed"))
    }
    assert names == NOUNS.keys()


def test_a_public_class_has_a_name_of_its_own() -> None:
    found = defaultdict(list)
    for path, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(str(path))
    assert {name: where for name, where in found.items() if len(where) > 1} == {}


def test_what_returns_something_says_so() -> None:
    """`Return`, `Yield`, `Raise` where it is that; what it does, where it does more."""
    found = [
        f"{path}:{node.lineno} {text.splitlines()[0]}"
        for path, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (text := ast.get_docstring(node)) and text.split()[0] in OPENERS
        if not text.startswith("Give up")
    ]
    assert found == []


def test_no_module_is_longer_than_a_reader_can_hold() -> None:
    long = {
        str(path): lines
        for path, _ in modules()
        if (lines := len((ROOT / path).read_text("utf-8").splitlines())) > 350
    }
    assert long == {}


OPEN_ENDED: Final = ("walstream/config/", "walstream/formats/")


def test_only_configuration_and_formats_hold_what_nobody_declared() -> None:
    """Elsewhere the values of a mapping have a type, of which `object` is one."""
    found = [
        f"{path}:{node.lineno}"
        for path, tree in modules()
        if not str(path).startswith(OPEN_ENDED)
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript) and _is_mapping_of_any(node)
    ]
    assert found == []


def _is_mapping_of_any(node: ast.Subscript) -> bool:
    mapping, _, key = ast.unparse(node).partition("[")
    return mapping in {"dict", "Mapping"} and key == "str, Any]"
