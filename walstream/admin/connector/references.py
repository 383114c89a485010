"""Values that stand elsewhere, and secrets: written as ${env:…} and ${file:…}.

Kafka Connect's config providers and Debezium Server's expressions name variables and
files. A variable stays one. What a properties file holds beside other keys, and a
secret that stands in the connector's file, goes into a file of its own.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from walstream.admin.connector import java_properties
from walstream.admin.connector.draft import Draft, is_secret, plain
from walstream.errors import ConfigError

_REFERENCE: Final = re.compile(r"\$\{([^}:]*):(?:([^}:]*):)?([^}]+)\}")
_EXPRESSION: Final = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_.]*)(:[^}]*)?\}")
_VARIABLE: Final = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_CLASSES: Final = {
    "FileConfigProvider": "file",
    "DirectoryConfigProvider": "directory",
    "EnvVarConfigProvider": "env",
}
_UNSPEAKABLE: Final = re.compile("[${}]")  # in the path of a ${file:…}
Spelling = Callable[[str], str]


@dataclass(slots=True)
class References:
    """Writes values; `files` are those that have to be made, for their owner alone."""

    draft: Draft
    output: Path
    files: dict[Path, str] = field(default_factory=dict, repr=False)
    _read: set[str] = field(default_factory=set)  # keys

    def written(
        self,
        key: str,
        spell: Spelling = str,
        text: str | None = None,
        part: str = "",
    ) -> str:
        """Return a key's value as the configuration spells it.

        `spell` is how the place spells a text; `text` is a part of the value, with the
        name of that `part`. A secret comes from a file.
        """
        self._read.add(key)
        place = f"{key}.{part}" if part else key
        value = self.draft.get(key) if text is None else text
        pattern = _EXPRESSION if self.draft.file.server else _REFERENCE
        made, end, refers = "", 0, False
        for found in pattern.finditer(value):
            written = self._reference(place, found, spell)
            if not written:
                continue
            refers = True
            made += plain(spell(value[end : found.start()])) + written
            end = found.end()
        if is_secret(part or key) and not refers:
            return self._apart(place, spell(value)) if value else ""
        return made + plain(spell(value[end:]))

    def refers(self, key: str) -> bool:
        """Return whether a value stands elsewhere, as a whole or in part."""
        pattern = _EXPRESSION if self.draft.file.server else _REFERENCE
        return bool(pattern.search(self.draft.get(key)))

    def refuse_unread(self) -> None:
        """Raise ConfigError for what was translated by the words of a reference.

        Names of topics, slots and tables are made of the value itself.
        """
        for key in self.draft.translated():
            is_group = key.endswith(".replacement")  # ${name} of a server's transform
            if key not in self._read and not is_group and self.refers(key):
                raise ConfigError(
                    f"{self.draft.file.shown(key)} refers to a value that stands "
                    "elsewhere",
                    hint="write the value into a copy of the file, and translate that",
                )

    def _reference(self, key: str, found: re.Match[str], spell: Spelling) -> str:
        """Return what stands for a reference; "": it is none."""
        if self.draft.file.server:
            return self._expression(key, found)
        provider, path, name = found.groups()
        kind = self._kind(provider)
        if kind == "env" and not path and _VARIABLE.fullmatch(name):
            return f"${{env:{name}}}"
        if kind == "directory" and path and not _UNSPEAKABLE.search(path + name):
            return f"${{file:{Path(path, name)}}}"
        if kind == "file" and path:
            return self._from_properties(key, Path(path), name, spell)
        return self._absent(key, f"walstream cannot ask the provider {provider}")

    def _expression(self, key: str, found: re.Match[str]) -> str:
        name, default = found.groups()
        if not _VARIABLE.fullmatch(name):
            return self._absent(
                key, f"${{{name}}} is another key or a property of Java"
            )
        if default is not None:
            self.draft.decide(
                key,
                f"${{{name}:…}} has a default, which ${{env:{name}}} has not: set the "
                "variable",
            )
        return f"${{env:{name}}}"

    def _kind(self, provider: str) -> str:
        entries = self.draft.file.entries
        given = entries.get(f"config.providers.{provider}.class", "")
        return _CLASSES.get(given.rpartition(".")[2], "" if given else provider)

    def _from_properties(self, key: str, path: Path, name: str, spell: Spelling) -> str:
        try:
            entries = dict(java_properties.read(path.read_bytes().decode("iso-8859-1")))
        except (OSError, ValueError):
            return self._absent(key, f"{path} cannot be read here")
        if name not in entries:
            return self._absent(key, f"{path} has no key {name}")
        return self._apart(key, spell(entries[name].strip()))

    def _apart(self, key: str, secret: str) -> str:
        path = self._path(key)
        self.files[path] = secret
        return f"${{file:{path}}}"

    def _absent(self, key: str, why: str) -> str:
        path = self._path(key)
        known = key if self.draft.has(key) else key.rpartition(".")[0]
        self.draft.decide(
            known, f"{why}: write the value into {path}, which only its owner may read"
        )
        return f"${{file:{path}}}"

    def _path(self, key: str) -> Path:
        name = key.removeprefix("producer.override.").replace("/", "_")
        return self.output.absolute().with_suffix(f".{name}")
