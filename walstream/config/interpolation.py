"""${env:NAME} and ${file:PATH} in any text of the configuration.

One pass: what came out of a variable or a file is never looked at again, so that a
password may hold any character. A path may be built from a variable, as systemd's
${file:${env:CREDENTIALS_DIRECTORY}/dsn}. $${ stands for a plain ${.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, Final

from walstream.config.document import read_text
from walstream.config.field import EnvironmentText
from walstream.config.problem import Path, Problem
from walstream.errors import ConfigError

_ENV: Final = r"\$\{env:(?P<env>[A-Za-z_][A-Za-z0-9_]*)\}"
_FILE: Final = r"\$\{file:(?P<file>(?:[^${}]|\$\{env:[A-Za-z_][A-Za-z0-9_]*\})+)\}"
_REFERENCE: Final = re.compile(rf"(?P<escape>\$\$\{{)|{_ENV}|{_FILE}|(?P<other>\$\{{)")
_ENV_REFERENCE: Final = re.compile(_ENV)


STAND_IN: Final = "0"  # it may stand for a host, a port and a password


def without_references(node: Any) -> Any:
    """Return a copy with `STAND_IN` for each reference: what the file itself says."""
    if isinstance(node, dict):
        return {key: without_references(value) for key, value in node.items()}
    if isinstance(node, list):
        return [without_references(value) for value in node]
    if isinstance(node, str):
        return _REFERENCE.sub(lambda it: "${" if it["escape"] else STAND_IN, node)
    return node


class _Unresolved(Exception):
    """The reason; the caller knows the path."""


@dataclass
class Interpolation:
    """A run over one document; afterwards it tells what came from where."""

    environment: Mapping[str, str] = field(repr=False)
    pieces: dict[Path, list[str]] = field(default_factory=dict, repr=False)
    problems: list[Problem] = field(default_factory=list)

    def expand(self, node: Any, path: Path = ()) -> Any:
        """Return a copy in which every reference is replaced."""
        if isinstance(node, dict):
            return {key: self.expand(node[key], (*path, str(key))) for key in node}
        if isinstance(node, list):
            return [self.expand(node[i], (*path, i)) for i in range(len(node))]
        return self._expand_text(node, path) if isinstance(node, str) else node

    def _expand_text(self, text: str, path: Path) -> str:
        pieces: list[str] = []

        def replacement(found: re.Match[str]) -> str:
            if found["escape"]:
                return "${"
            piece = self._resolve(found)
            pieces.append(piece)
            return piece

        try:
            expanded = _REFERENCE.sub(replacement, text)
            _check_text(expanded)
        except _Unresolved as error:
            self.problems.append(Problem(path, str(error)))
            return text
        if pieces:
            self.pieces[path] = pieces
        if isinstance(text, EnvironmentText):
            return EnvironmentText(expanded)
        return expanded

    def _resolve(self, found: re.Match[str]) -> str:
        if found["env"]:
            return self._variable(found["env"])
        if found["file"]:
            path = _ENV_REFERENCE.sub(lambda v: self._variable(v["env"]), found["file"])
            try:
                content = read_text(FilePath(path))
            except ConfigError as error:
                raise _Unresolved(f"${{file:…}}: {error}") from None
            return content.removesuffix("\n").removesuffix("\r")
        raise _Unresolved(
            "has a ${ that is neither ${env:NAME} nor ${file:PATH}: write $${ for a "
            "plain ${"
        )

    def _variable(self, name: str) -> str:
        if name not in self.environment:
            raise _Unresolved(f"the environment variable {name} is not set")
        return self.environment[name]


def _check_text(text: str) -> None:
    if "\0" in text:
        raise _Unresolved("holds a NUL character")
    try:
        text.encode()
    except UnicodeEncodeError:  # a variable's bytes, as Python smuggles them in
        raise _Unresolved("is not UTF-8 text") from None
