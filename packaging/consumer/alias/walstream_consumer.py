"""Another name for the consumer library, which is installed in the folder of this file.

Both names are the same objects, those of submodules too, and each is loaded once. The
package is taken from this folder: a program may be a file of the package's name.
`packaging/consumer/stage.py` writes this module for the other direction.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import InspectLoader, Loader
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, spec_from_loader
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from consumer import *  # noqa: F403 - whatever it offers

_ALIAS: Final = "walstream_consumer"
_PACKAGE: Final = "consumer"
_MARK: Final = "IdempotentConsumer"  # has the library, and hardly anything else


class _Loader(Loader):
    """Gives the package's module for one of the other name."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._spec: ModuleSpec | None = None

    def create_module(self, _spec: ModuleSpec) -> ModuleType:
        module = import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import has replaced it

    def get_code(self, _name: str) -> CodeType | None:
        """Return what `python -m` runs."""
        found = find_spec(self._name)
        loader = None if found is None else found.loader
        return (
            loader.get_code(self._name) if isinstance(loader, InspectLoader) else None
        )


class _Finder:
    """Finds the package beside this file, and its modules by either name."""

    @staticmethod
    def find_spec(
        name: str,
        path: Sequence[str] | None = None,
        _target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if name == _PACKAGE and path is None:
            found = PathFinder.find_spec(name, [str(Path(__file__).parent)])
            # a folder without __init__.py is no package of ours
            return found if found is not None and found.origin else None
        if not name.startswith(f"{_ALIAS}."):
            return None
        real = _PACKAGE + name.removeprefix(_ALIAS)
        found = find_spec(real)
        if found is None:
            return None
        is_package = found.submodule_search_locations is not None
        return spec_from_loader(
            name, _Loader(real), origin=found.origin, is_package=is_package
        )


def _load() -> ModuleType:
    sys.meta_path.insert(0, _Finder)
    module = import_module(_PACKAGE)
    if not hasattr(module, _MARK):
        sys.meta_path.remove(_Finder)
        where = getattr(module, "__file__", None) or "another module"
        raise ImportError(
            f"{_ALIAS} needs the package {_PACKAGE} of walstream, but {_PACKAGE} is "
            f"{where}, which is imported already: rename that file, or import {_ALIAS} "
            "before it"
        )
    return module


if __name__ == "__main__":
    _load()
    sys.exit(import_module(f"{_PACKAGE}.__main__").main())
sys.modules[__name__] = _load()
