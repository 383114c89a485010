"""A configuration file as nested tables of plain values: TOML, or a careful YAML.

YAML is read as its core schema alone, so that `no` and 010 mean what they look like,
and without what makes it dangerous: tags, anchors, aliases and merges. Error texts name
line and column and quote nothing from the file, since any line may hold a secret.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from walstream.errors import ConfigError

LARGEST_FILE: Final = 1 << 20
DEEPEST: Final = 16  # tables in tables; the model needs five

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_QUOTED: Final = re.compile(r"'[^'\s]{2,}'|\"[^\"\s]{2,}\"")
_MERGE_TAG: Final = "tag:yaml.org,2002:merge"

Document = dict[str, Any]


def read(path: Path) -> Document:
    """Read the file, by its name's ending."""
    text = read_text(path)
    readers = {".toml": _read_toml, ".yaml": _read_yaml, ".yml": _read_yaml}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise ConfigError(
            f"{path}: cannot tell what this is: its name ends neither in .toml nor in "
            ".yaml"
        )
    if not text.strip():
        raise ConfigError(
            f"{path}: the file is empty",
            hint="the walstream.toml that walstream ships shows every key",
        )
    try:
        document = reader(path, text)
    except RecursionError:
        raise _too_deep(path) from None
    if _depth(document) > DEEPEST:
        raise _too_deep(path)
    if not document:
        raise ConfigError(
            f"{path}: the file holds nothing but comments",
            hint="the walstream.toml that walstream ships shows every key",
        )
    return document


def read_text(path: Path) -> str:
    """UTF-8 text of a file of reasonable size; ConfigError otherwise."""
    try:
        if path.is_dir():
            raise ConfigError(f"{path}: is a folder, not a file")
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError:
        raise ConfigError("a file's name holds a NUL character") from None
    if len(content) > LARGEST_FILE:
        raise ConfigError(f"{path}: is larger than {LARGEST_FILE >> 20} MiB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{path}, line {line}: is not UTF-8 text") from None


def _read_toml(path: Path, text: str) -> Document:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        end = f"at its end, line {len(text.splitlines())}"
        complaint = str(error).replace("at end of document", end)
        raise ConfigError(f"{path}: is no TOML: {complaint}") from None


def _read_yaml(path: Path, text: str) -> Document:
    try:
        _refuse_magic(path, text)
        document = yaml.load(text, _CoreLoader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        problem = _without_content(error.problem or "cannot be read")
        raise ConfigError(
            f"{path}: is no YAML: {problem}{_position(error.problem_mark)}"
        ) from None
    except (yaml.YAMLError, ValueError):  # the latter: a number of too many digits
        raise ConfigError(f"{path}: is no YAML: a character or number in it") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: holds no keys: write key: value")
    return document


def _refuse_magic(path: Path, text: str) -> None:
    """Look at the events, of which nothing is built yet."""
    depth = 0
    for event in yaml.parse(text, _Loader):
        where = _position(event.start_mark)
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise ConfigError(
                f"{path}: anchors (&) and aliases (*) are not read: write the value "
                f"itself, or quote a text that begins so{where}"
            )
        if getattr(event, "tag", None):
            raise ConfigError(
                f"{path}: tags (!) are not read: leave it out, or quote a text that "
                f"begins so{where}"
            )
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise _too_deep(path)


class _CoreLoader(_Loader):  # type: ignore[misc] # C or Python: known at run time
    """Builds text, whole and decimal numbers, true, false, null, lists and tables."""

    yaml_implicit_resolvers: Final[dict[str, list[Any]]] = {}

    def read_table(self, node: yaml.MappingNode) -> Document:
        table: Document = {}
        for key_node, value_node in node.value:
            where = key_node.start_mark
            if key_node.tag == _MERGE_TAG or not isinstance(key_node, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(None, None, "a key that is no text", where)
            key = str(key_node.value)
            if key in table:
                raise yaml.MarkedYAMLError(None, None, "a key stands twice", where)
            table[key] = self.construct_object(value_node, deep=True)
        return table


def _construct_table(loader: _CoreLoader, node: yaml.MappingNode) -> Iterator[Document]:
    table: Document = {}
    yield table
    table.update(loader.read_table(node))


_CoreLoader.add_constructor("tag:yaml.org,2002:map", _construct_table)
for _tag, _text, _first in (
    ("bool", r"true|false", "tf"),
    ("int", r"-?(?:0|[1-9][0-9]*)", "-0123456789"),
    ("float", r"-?(?:0|[1-9][0-9]*)\.[0-9]+", "-0123456789"),
    ("null", r"~|null|", ["~", "n", ""]),
):
    _CoreLoader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_text})\Z"), list(_first)
    )


def _depth(document: Document) -> int:
    """Levels of tables and lists, counted no further than is refused."""
    level: list[object] = [document]
    depth = 0
    while level and depth <= DEEPEST:
        depth += 1
        children: list[object] = []
        for node in level:
            if isinstance(node, dict):
                children.extend(node.values())
            elif isinstance(node, list):
                children.extend(node)
        level = [child for child in children if isinstance(child, dict | list)]
    return depth


def _too_deep(path: Path) -> ConfigError:
    return ConfigError(f"{path}: tables stand in each other deeper than {DEEPEST}")


def _position(mark: Any) -> str:
    return f" (at line {mark.line + 1}, column {mark.column + 1})" if mark else ""


def _without_content(complaint: str) -> str:
    """Keep single characters, drop quoted words: they may be half a secret."""
    return _QUOTED.sub("…", complaint)
