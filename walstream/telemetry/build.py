"""Choice of the form of the hot path: compiled by mypyc, or its Python source.

A wheel may hold both: beside a module's source, its compiled twin. Python prefers the
twin; WALSTREAM_PURE=1 turns that round, for this process and those that it starts.
"""

import os
import sys
from collections.abc import Sequence
from importlib.machinery import (
    SOURCE_SUFFIXES,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
)
from importlib.util import find_spec
from types import ModuleType
from typing import Final

_PACKAGE: Final = "walstream"
_HOT: Final = f"{_PACKAGE}.pipeline.loop"  # compiled, if any is


class _SourcesFirst:
    """Finds this package's modules as if there were none but sources."""

    @staticmethod
    def find_spec(
        name: str,
        path: Sequence[str] | None = None,
        _target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if path is None or not name.startswith(f"{_PACKAGE}."):
            return None
        for folder in path:
            finder = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES))
            found = finder.find_spec(name)
            if found is not None and found.loader is not None:
                return found
        return None


def choose() -> None:
    """See that sources are taken where WALSTREAM_PURE wants that; before all others."""
    if os.environ.get("WALSTREAM_PURE", "0") not in ("", "0"):
        sys.meta_path.insert(0, _SourcesFirst)


def form() -> str:
    """Return which form runs in this process: `compiled` or `pure`."""
    found = find_spec(_HOT)
    origin = found.origin if found is not None else None
    is_source = origin is None or origin.endswith(tuple(SOURCE_SUFFIXES))
    return "pure" if is_source else "compiled"
