"""The mutants: texts of walstream that bring an old bug back, one at a time."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

FOLDER: Final = Path(__file__).parent / "mutants"


class NoSuchText(Exception):
    """The source no longer has the text that a mutant replaces, or has it twice."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One bug: where it was met, what brings it back, what has to notice."""

    name: str
    origin: str  # the public bug's name, or what was wrong here once
    path: str
    edits: tuple[tuple[str, str], ...]  # (text, text instead), each exactly once
    tests: tuple[str, ...]  # files or node ids, the quickest first

    @classmethod
    def of(cls, entry: dict[str, object]) -> Self:
        edits = entry.get("edits") or [[entry["old"], entry["new"]]]
        assert isinstance(edits, list)
        assert isinstance(entry["tests"], list)
        return cls(
            name=str(entry["name"]),
            origin=str(entry["origin"]),
            path=str(entry["path"]),
            edits=tuple((_trimmed(old), _trimmed(new)) for old, new in edits),
            tests=tuple(entry["tests"]),
        )

    def text(self, root: Path) -> str:
        """Return the broken source."""
        text = (root / self.path).read_text("utf-8")
        for old, new in self.edits:
            if text.count(old) != 1:
                raise NoSuchText(
                    f"{self.name}: {self.path} has {text.count(old)} times: {old!r}"
                )
            text = text.replace(old, new)
        return text


def _trimmed(text: object) -> str:
    """Return it without the line break that ends a text of several lines."""
    return str(text).removesuffix("\n")


def mutants() -> Iterator[Mutant]:
    """Yield all of them, by file and in its order."""
    for path in sorted(FOLDER.glob("*.toml")):
        for entry in tomllib.loads(path.read_text("utf-8"))["mutant"]:
            yield Mutant.of(entry)
