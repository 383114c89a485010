"""The project's modules that a mutant does not reach, loaded once for all its trials.

To load them anew takes longer than most of the tests. What imports the broken module,
or something that does, is loaded by each trial, as is what belongs to the tests.
"""

import ast
import importlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

_LOADED: Final = ("walstream", "consumer")
_READ: Final = (*_LOADED, "tests")


class Preload:
    """Modules of one tree, which has to be healthy when they are loaded."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._imports: dict[str, set[str]] = {}  # of each module, those of the project
        sys.path.insert(0, str(root))

    def load(self, tests: Sequence[str]) -> None:
        """Load what these tests load."""
        for test in tests:
            for name in self._reached(_name(test)):
                if name.split(".")[0] in _LOADED:
                    importlib.import_module(name)

    def untouched(self, path: str) -> frozenset[str]:
        """Return the loaded modules that are the same whatever this file says."""
        broken = {_name(path)}
        loaded = {name for name in sys.modules if name.split(".")[0] in _LOADED}
        while more := {
            name for name in loaded - broken if not broken.isdisjoint(self._of(name))
        }:
            broken |= more
        return frozenset(loaded - broken)

    def _reached(self, name: str) -> set[str]:
        reached, new = {name}, [name]
        while new:
            more = self._of(new.pop()) - reached
            reached |= more
            new += more
        return reached

    def _of(self, name: str) -> set[str]:
        if name not in self._imports:
            file = self._file(name)
            found = set() if file is None else set(_imported(file))
            # a package that is loaded anew does not know what it held
            found.add(name.rpartition(".")[0])
            self._imports[name] = {
                one for one in found if self._file(one) is not None and one != name
            }
        return self._imports[name]

    def _file(self, name: str) -> Path | None:
        base = self._root.joinpath(*name.split("."))
        files = (base / "__init__.py", base.with_suffix(".py"))
        return next((file for file in files if file.is_file()), None)


def _name(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _imported(file: Path) -> Iterator[str]:
    """Yield what may be modules: a name that is imported may be one, or in one."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] in _READ:
                yield from (".".join(parts[:end]) for end in range(1, len(parts) + 1))
