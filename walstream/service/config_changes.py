"""Changes of a reloaded configuration, for each worker and for the rest.

A worker goes by its source's part of the configuration, and by the files that this part
names: a certificate that was replaced under the same name is a change, too.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG
from typing import Final, Protocol

from walstream.config import Config
from walstream.state.control_message import ErrorAnswer, ReloadAnswer

_OF_THE_SUPERVISOR: Final = frozenset(
    {"http", "log_level", "stats_interval", "reload_grace", "state"}
)
_Mark = tuple[int, int, int]


class ConfigReader(Protocol):
    """Source of a running instance's configuration for a reload."""

    def whole(self) -> Config:
        """Read all of it; raise ConfigError for all that is wrong."""

    def references(self) -> Config:
        """Read again only what the kept file refers to by ${file:} and ${env:}."""

    def keep(self) -> None:
        """Note that all goes by what was read last: nothing in it was refused."""


@dataclass(frozen=True, slots=True)
class Reloaded:
    """Result of a reload."""

    problem: str = ""  # why all goes on as before
    exit_code: int = 0
    changes: tuple[str, ...] = ()  # keys and files, never a value
    lines: tuple[str, ...] = ()  # what was done, for people

    @property
    def answer(self) -> ReloadAnswer | ErrorAnswer:
        """Return it for who asked over the control socket."""
        if self.problem:
            return ErrorAnswer(self.problem, self.exit_code)
        return ReloadAnswer(self.changes, self.lines)


@dataclass(frozen=True, slots=True)
class Effective:
    """Configuration of a worker."""

    tables: Mapping[str, object] = field(repr=False)
    files: Mapping[str, _Mark]

    @classmethod
    def of(cls, config: Config, source: str) -> "Effective":
        """Take a source's part, as it is now. The source has to be there."""
        tables = config.model_dump(mode="json", exclude=set(_OF_THE_SUPERVISOR))
        own = tables["sources"][source]
        tables["sources"] = {source: own}
        used = own["sinks"]
        tables["sinks"] = {name: tables["sinks"][name] for name in used}
        return cls(tables, dict(_marks(tables)))

    def changes(self, to: "Effective") -> Iterator[str]:
        """Name the keys and files that are different there."""
        yield from _changed_keys(self.tables, to.tables)
        for name in sorted(self.files.keys() & to.files.keys()):
            if self.files[name] != to.files[name]:
                yield name


def own_changes(before: Config, after: Config) -> Iterator[str]:
    """Name the keys that are different for the supervisor itself."""
    own = set(_OF_THE_SUPERVISOR - {"state"})
    return _changed_keys(
        before.model_dump(mode="json", include=own),
        after.model_dump(mode="json", include=own),
    )


def _changed_keys(before: object, after: object, path: str = "") -> Iterator[str]:
    """Name each key that has another value, with its path; no value is shown."""
    if before == after:
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted({*before, *after}):
            inner = f"{path}.{key}" if path else str(key)
            yield from _changed_keys(before.get(key), after.get(key), inner)
    else:
        yield path


def _marks(tables: object) -> Iterator[tuple[str, _Mark]]:
    """Mark the files whose names stand anywhere: they are other ones when it differs.

    libpq reads those of a DSN at each connection: they are none of these.
    """
    for text in set(_texts(tables)):
        try:
            found = Path(text).stat()
        except (OSError, ValueError):  # it is no name, or too long for one
            continue
        if S_ISREG(found.st_mode):
            yield text, (found.st_ino, found.st_size, found.st_mtime_ns)


def _texts(node: object) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, Mapping):
        for child in node.values():
            yield from _texts(child)
    elif isinstance(node, Iterable):
        for child in node:
            yield from _texts(child)
