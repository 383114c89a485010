"""Makes the project walstream-consumer of walstream's own sources: `stage.py FOLDER`.

The package `consumer` becomes `walstream_consumer`; the few modules of walstream that
it imports become `walstream_consumer._walstream`. Imports are changed where the parser
finds them; loggers keep their names. What could name a module in another way (a string,
an import at run time) is refused, and so is a library that is not declared.
"""

import ast
import json
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import Any, Final, NoReturn

ROOT: Final = Path(__file__).parents[2]
HERE: Final = Path(__file__).parent
PACKAGE: Final = "walstream_consumer"
SOURCE: Final = "consumer"
_VENDORED: Final = {"walstream": f"{PACKAGE}._walstream"}
_RENAMED: Final = {SOURCE: PACKAGE, **_VENDORED}
_LIBRARIES: Final = {  # a module, and the distribution that brings it
    "confluent_kafka": "confluent-kafka",
    "orjson": "orjson",
    "psycopg": "psycopg",
}
_EXTRAS: Final = {"lmdb": "lmdb"}
_DYNAMIC: Final = {
    *("importlib", "import_module", "__import__", "find_spec", "pkgutil", "runpy"),
    *("exec", "eval", "entry_points", "modules"),
}
_DOTTED: Final = re.compile(rf"\b(?:{'|'.join(_RENAMED)})(?:\.\w+)+")
_NAME: Final = "__name__"


class Unexpected(Exception):
    """The sources have what this script does not know how to change."""


def stage(folder: Path, root: Path = ROOT) -> None:
    """Write the project into a folder, which is emptied first."""
    shutil.rmtree(folder, ignore_errors=True)
    for path in sorted(_modules(root)):
        _write(folder / _target(path), _Module(root, path).rewritten())
    for package in _packages(root):
        _write(folder / package / "__init__.py", _docstring(root, package))
    (folder / PACKAGE / "py.typed").touch()
    _alias(folder)
    stubs = folder / f"{SOURCE}-stubs"
    init = (folder / PACKAGE / "__init__.py").read_text("utf-8")
    _write(stubs / "__init__.pyi", init)
    shutil.copyfile(HERE / "stubs" / "py.typed", stubs / "py.typed")
    shutil.copyfile(root / "LICENSE", folder / "LICENSE")
    shutil.copyfile(HERE / "README.md", folder / "README.md")
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    text = Template((HERE / "pyproject.toml.in").read_text("utf-8")).substitute(
        version=project["version"],
        python=project["requires-python"],
        dependencies=_needed(project, _LIBRARIES),
        lmdb=_needed(project, _EXTRAS),
        registry=json.dumps(project["optional-dependencies"]["registry"]),
    )
    _write(folder / "pyproject.toml", text)


def vendored(root: Path = ROOT) -> set[str]:
    """Return the modules of walstream that the library needs."""
    return {
        _dotted(path)
        for path in _modules(root)
        if path.parts[0] in _VENDORED and path.name != "__init__.py"
    }


def rewritten(root: Path, path: Path) -> str:
    """Return a file's text with its imports changed; it may be any file, as a test."""
    return _Module(root, path).rewritten()


class _Module:
    """A module of the sources, to be changed."""

    def __init__(self, root: Path, path: Path) -> None:
        self._root = root
        self._path = path
        self._text = (root / path).read_text("utf-8")
        self._tree = ast.parse(self._text)

    def imported(self) -> Iterator[Path]:
        """Yield the files of our own packages that it imports."""
        for node in ast.walk(self._tree):
            if isinstance(node, ast.ImportFrom) and _top(node.module) in _RENAMED:
                yield from self._files(node)

    def _files(self, node: ast.ImportFrom) -> Iterator[Path]:
        folder = Path(*str(node.module).split("."))
        if (self._root / folder).is_dir():
            for name in node.names:
                file = folder / f"{name.name}.py"
                if (self._root / file).exists():
                    yield file
                elif folder.parts[0] in _VENDORED:
                    self._refuse(node, f"{name.name} is no module of {node.module}")
                else:
                    yield folder / "__init__.py"
        else:
            yield folder.with_suffix(".py")

    def rewritten(self) -> str:
        """Return its text with its imports changed; refuse what is not understood."""
        lines = self._text.splitlines(keepends=True)
        loggers = set()
        for node in ast.walk(self._tree):
            match node:
                case ast.ImportFrom():
                    self._import_from(node, lines)
                case ast.Import():
                    self._import(node)
                case ast.Call(
                    func=ast.Attribute(attr="getLogger"), args=[ast.expr() as given]
                ):
                    loggers.add(given)
                    if isinstance(given, ast.Name) and given.id == _NAME:
                        dotted = json.dumps(_dotted(self._path))
                        self._replace(lines, given, _NAME, dotted)
                case _:
                    pass
        self._check(loggers)
        return "".join(lines)

    def _import_from(self, node: ast.ImportFrom, lines: list[str]) -> None:
        top = _top(node.module)
        if node.level or top is None:
            self._refuse(node, "a relative import")
        if top in _RENAMED:
            new = _RENAMED[top] + str(node.module).removeprefix(top)
            self._replace(lines, node, f"from {node.module} ", f"from {new} ")
        else:
            self._library(node, top)

    def _import(self, node: ast.Import) -> None:
        for name in node.names:
            self._library(node, str(_top(name.name)))

    def _library(self, node: ast.stmt, top: str) -> None:
        if top in _EXTRAS and node.col_offset > 0:
            return  # not before it is needed
        if top not in sys.stdlib_module_names and top not in _LIBRARIES:
            self._refuse(node, f"import of {top}")
        if top in _DYNAMIC:
            self._refuse(node, f"import of {top}")

    def _check(self, loggers: set[ast.expr]) -> None:
        documented = set(_docstrings(self._tree))
        compared = {
            node.left for node in ast.walk(self._tree) if isinstance(node, ast.Compare)
        }  # if __name__ == "__main__"
        for node in ast.walk(self._tree):
            match node:
                case ast.Name(id=name) | ast.Attribute(attr=name) if name in _DYNAMIC:
                    self._refuse(node, name)
                case ast.Name(id="__file__"):
                    self._refuse(node, "__file__")
                case ast.Name(id="__name__") if node not in loggers | compared:
                    self._refuse(node, _NAME)
                case ast.Constant(value=str(text)) if node not in documented | loggers:
                    for found in filter(self._exists, _DOTTED.findall(text)):
                        self._refuse(node, f"a string with {found}")
                case _:
                    pass

    def _exists(self, module: str) -> bool:
        path = self._root / Path(*module.split("."))
        return path.is_dir() or path.with_suffix(".py").exists()

    def _replace(
        self, lines: list[str], node: ast.expr | ast.stmt, old: str, new: str
    ) -> None:
        at = node.lineno - 1
        # columns are counted in bytes
        line = lines[at].encode()
        before, rest = line[: node.col_offset], line[node.col_offset :]
        if not rest.startswith(old.encode()):
            self._refuse(node, f"no {old!r}")
        lines[at] = (before + new.encode() + rest[len(old.encode()) :]).decode()

    def _refuse(self, node: ast.expr | ast.stmt, what: str) -> NoReturn:
        raise Unexpected(f"{self._path}:{node.lineno}: {what}")


def _modules(root: Path) -> set[Path]:
    """Find the library's modules, and all that they import of walstream."""
    found: set[Path] = set()
    left = [path.relative_to(root) for path in (root / SOURCE).rglob("*.py")]
    while left:
        path = left.pop()
        if path not in found:
            found.add(path)
            left.extend(_Module(root, path).imported())
    return found


def _packages(root: Path) -> set[Path]:
    """Name the packages of the modules of walstream, as they are called there."""
    return {
        folder
        for path in _modules(root)
        if path.parts[0] in _VENDORED
        for folder in _target(path).parents
        if len(folder.parts) > 1
    }


def _docstring(root: Path, package: Path) -> str:
    """Write a package that loads nothing else, with what its source says that it is."""
    source = root / "walstream" / Path(*package.parts[2:]) / "__init__.py"
    told = ast.get_docstring(ast.parse(source.read_text("utf-8"))) or ""
    return f'"""{told.splitlines()[0]}"""\n'


def _alias(folder: Path) -> None:
    """Write the module `consumer`: the other name, with the names exchanged."""
    text = (HERE / "alias" / f"{PACKAGE}.py").read_text("utf-8")
    for old, new in (
        (f"from {SOURCE} import *", f"from {PACKAGE} import *"),
        (f'_ALIAS: Final = "{PACKAGE}"', f'_ALIAS: Final = "{SOURCE}"'),
        (f'_PACKAGE: Final = "{SOURCE}"', f'_PACKAGE: Final = "{PACKAGE}"'),
    ):
        if text.count(old) != 1:
            raise Unexpected(f"{PACKAGE}.py: no line {old!r}")
        text = text.replace(old, new)
    _write(folder / f"{SOURCE}.py", text)


def _needed(project: dict[str, Any], libraries: dict[str, str]) -> str:
    """Write walstream's own requirements of these, in TOML."""
    found = [
        need
        for need in project["dependencies"]
        if re.split(r"[\[<>=]", need)[0] in libraries.values()
    ]
    if len(found) != len(libraries):
        raise Unexpected(f"pyproject.toml: {found}")
    return json.dumps(found)


def _docstrings(tree: ast.Module) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield node.value


def _target(path: Path) -> Path:
    """Return where a source file goes."""
    return Path(*_RENAMED[path.parts[0]].split("."), *path.parts[1:])


def _dotted(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _top(module: str | None) -> str | None:
    return module.partition(".")[0] if module else None


def _write(path: Path, text: str) -> None:
    _made(path.parent)
    path.write_text(text, "utf-8")


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


if __name__ == "__main__":
    stage(Path(sys.argv[1]))
