"""docs/schemas/state.json, made from the code: `make reference` writes it.

What the documents of a state folder hold, by their names; `NAME/*` is one for each
thing of a kind. A test compares the file with this, so that a change of what is stored
shows in a review.
"""

import importlib
import json
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Union

from pydantic import TypeAdapter

from tests.support.project.own_coverage import ROOT
from walstream.pipeline.state_document import StateDocument, StateDocuments
from walstream.telemetry.json_codec import LEFT_OUT

FILE: Final = ROOT / "docs" / "schemas" / "state.json"
_DECLARED: Final = re.compile(r"(?m)^(\w+): Final = StateDocuments?\(")
Stored = StateDocument[Any] | StateDocuments[Any]


def name_of(document: Stored) -> str:
    """Return how a document is called here, and in docs/architecture.md."""
    if isinstance(document, StateDocument):
        return document.name
    return f"{document.prefix}*"


def documents() -> Iterator[tuple[Path, Stored]]:
    """Yield all that the code declares, each with its file."""
    for path in sorted((ROOT / "walstream").rglob("*.py")):
        file = path.relative_to(ROOT)
        for name in _DECLARED.findall(path.read_text("utf-8")):
            yield file, getattr(_module(file), name)


def _module(file: Path) -> ModuleType:
    return importlib.import_module(".".join(file.with_suffix("").parts))


def schema() -> dict[str, Any]:
    """Return the JSON schema of each document."""
    kinds: dict[str, list[Any]] = {}
    for _, document in documents():
        known = kinds.setdefault(name_of(document), [])
        if document.kind not in known:
            known.append(document.kind)
    return {name: _schema_of(Union[*kinds[name]]) for name in sorted(kinds)}


def _schema_of(kind: Any) -> dict[str, Any]:
    made = TypeAdapter(kind).json_schema()
    made.pop("description", None)
    for name, definition in made.get("$defs", {}).items():
        definition.pop("description", None)
        for field in _left_out(name):
            definition["properties"].pop(field)
    return made


def _left_out(name: str) -> Iterator[str]:
    """Yield the fields of a dataclass that are not stored."""
    for file, _ in documents():
        found = getattr(_module(file), name, None)
        if isinstance(found, type) and is_dataclass(found):
            yield from (one.name for one in fields(found) if one.metadata == LEFT_OUT)
            return


def main() -> None:
    """Write it."""
    FILE.write_text(json.dumps(schema(), indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
