"""A configuration file as nested tables of plain values: TOML, or a careful YAML.

Error texts name line and column and quote nothing from the file, since any line may
hold a secret.
"""

import re
import tomllib
from pathlib import Path
from typing import Any, Final

from walstream.errors import ConfigError

LARGEST_FILE: Final = 1 << 20
DEEPEST: Final = 16  # tables in tables; the model needs five

Document = dict[str, Any]


def read(path: Path) -> Document:
    """Read the file, by its name's ending."""
    text = read_text(path)
    readers = {".toml": _read_toml, ".yaml": _read_yaml, ".yml": _read_yaml}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise ConfigError(
            f"{path}: is neither TOML nor YAML: its name must end in .toml or .yaml"
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


_YAML: Final = re.compile(r"[\w\"'-]+[ \t]*:(?:\s|$)")


def _looks_like_yaml(text: str) -> bool:
    lines = (line.strip() for line in text.splitlines())
    first = next((one for one in lines if one not in {"", "---"} and one[0] != "#"), "")
    return _YAML.match(first) is not None


def _read_toml(path: Path, text: str) -> Document:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        end = f"at its end, line {len(text.splitlines())}"
        complaint = str(error).replace("at end of document", end)
        meant = f"it looks like YAML: name it {path.with_suffix('.yaml')}"
        raise ConfigError(
            f"{path}: is not valid TOML: {complaint}",
            hint=meant if _looks_like_yaml(text) else "",
        ) from None


def _read_yaml(path: Path, text: str) -> Document:
    from walstream.config import yaml_reader  # noqa: PLC0415 - loads PyYAML

    return yaml_reader.read(path, text, DEEPEST)


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
    return ConfigError(f"{path}: tables are nested deeper than {DEEPEST}")
