"""YAML as its core schema alone, so that `no` and 010 mean what they look like.

And without what makes it dangerous: tags, anchors, aliases and merges.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from walstream.errors import ConfigError

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_QUOTED: Final = re.compile(r"'[^'\s]{2,}'|\"[^\"\s]{2,}\"")
_MERGE_TAG: Final = "tag:yaml.org,2002:merge"

_LIBYAML_TOO_DEEP: Final = "maximum nesting depth"
Document = dict[str, Any]


def read(path: Path, text: str, deepest: int) -> Document:
    """Read it; raise RecursionError where things stand in each other too deep."""
    try:
        _refuse_magic(path, text, deepest)
        document = yaml.load(text, _CoreLoader)  # noqa: S506 - a SafeLoader
    except yaml.MarkedYAMLError as error:
        if _LIBYAML_TOO_DEEP in (error.problem or ""):  # before its first event
            raise RecursionError from None
        problem = _without_content(error.problem or "cannot be read")
        raise ConfigError(
            f"{path}: is not valid YAML: {problem}{_position(error.problem_mark)}"
        ) from None
    except (yaml.YAMLError, ValueError):  # the latter: a number of too many digits
        raise ConfigError(
            f"{path}: is not valid YAML: a character or number in it"
        ) from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"{path}: holds no keys: write key: value")
    return document


def _refuse_magic(path: Path, text: str, deepest: int) -> None:
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
        if depth > deepest:
            raise RecursionError


class _CoreLoader(_Loader):  # type: ignore[misc] # C or Python: known at run time
    """Builds text, whole and decimal numbers, true, false, null, lists and tables."""

    yaml_implicit_resolvers: Final[dict[str, list[Any]]] = {}

    def read_table(self, node: yaml.MappingNode) -> Document:
        table: Document = {}
        for key_node, value_node in node.value:
            where = key_node.start_mark
            if key_node.tag == _MERGE_TAG or not isinstance(key_node, yaml.ScalarNode):
                raise yaml.MarkedYAMLError(
                    None, None, "a key that is not a text", where
                )
            key = str(key_node.value)
            if key in table:
                raise yaml.MarkedYAMLError(None, None, "a key is written twice", where)
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


def _position(mark: Any) -> str:
    return f" (at line {mark.line + 1}, column {mark.column + 1})" if mark else ""


def _without_content(complaint: str) -> str:
    """Keep single characters, drop quoted words: they may be half a secret."""
    return _QUOTED.sub("…", complaint)
