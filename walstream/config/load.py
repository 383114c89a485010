"""From a file and the environment to one Config, or to one error that lists it all.

The order is: read, convert what has repliqate's shape, override by WALSTREAM__
variables, replace ${…}, read the sinks' topics_file, validate each key, then what keys
mean together.
"""

import json
import os
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, Final

from pydantic import ValidationError

from walstream.config import document, override, repliqate, secret, trust, validation
from walstream.config.interpolation import STAND_IN, Interpolation, without_references
from walstream.config.model import Config
from walstream.config.problem import Path, Problem, error_of, translate
from walstream.config.secret_keys import is_secret_key
from walstream.errors import ConfigError

DEFAULT_FILES: Final = (
    FilePath("walstream.toml"),
    FilePath("walstream.yaml"),
    FilePath("walstream.yml"),
    FilePath("/etc/walstream/walstream.toml"),
)
"""What a command reads without -c: the first that exists."""
_NONE_HERE: Final = "name one with -c FILE, or try walstream demo, which needs none"


@dataclass(frozen=True)
class WrittenConfig:
    """A file as it was written: what it refers to is read at each `config`."""

    file: FilePath
    named: str  # as an operator names it again; "" is the default's
    tables: document.Document = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)

    @classmethod
    def read(
        cls, path: FilePath | None, environment: Mapping[str, str] = os.environ
    ) -> "WrittenConfig":
        """Read the file alone; raise ConfigError where it cannot be parsed."""
        named = "" if path is None else str(path.absolute())
        path = path or _default_file()
        return cls(path, named, document.read(path), environment)

    def again(self) -> "WrittenConfig":
        """Read the same file again."""
        if not self.named:
            trust.refuse_strangers_file(self.file)
        return WrittenConfig(
            self.file, self.named, document.read(self.file), self.environment
        )

    def config(self) -> Config:
        """Read what it refers to, and check everything.

        Raises one ConfigError for all that is wrong.
        """
        return _checked(self)


def load(path: FilePath | None, environment: Mapping[str, str] = os.environ) -> Config:
    """Read and check everything; raise one ConfigError for all that is wrong."""
    return WrittenConfig.read(path, environment).config()


def _checked(written: WrittenConfig) -> Config:
    path, environment = written.file, written.environment
    old = repliqate.convert(deepcopy(written.tables))
    if old.problems:
        raise error_of(str(path), old.problems)
    tables = old.tables
    plain = _has_plain_secrets(tables)
    problems = override.apply(tables, environment)
    interpolation = Interpolation(environment)
    tables = interpolation.expand(tables)
    problems += interpolation.problems
    old.allow(tables, environment)
    problems += _read_topics_files(tables)
    config, found = _validate(tables, interpolation)
    failed = {problem.path for problem in problems}
    problems += [problem for problem in found if problem.path not in failed]
    if config is not None:
        found = list(validation.check(config, tables, environment))
        problems += [problem for problem in found if problem.path not in failed]
    if problems or config is None:
        raise error_of(str(path), map(old.locate, problems))
    secrets = _secrets(tables, interpolation)
    config = config.model_copy(update={"state": _state(config, path)})
    config = config.with_secrets(secrets).with_file(written.named)
    return config.with_remarks(old.remarks).with_plain_secrets_in(
        path if plain else None
    )


def _state(config: Config, file: FilePath) -> FilePath:
    """Find the state's folder: beside the file, wherever a command is run from.

    It used to be relative to the working directory: if only that one exists it is
    refused, because a start without it would be a first one.
    """
    written = FilePath(config.state)
    state = file.absolute().parent / written
    before = written.absolute()
    if before != state and before.is_dir() and not state.exists():
        raise ConfigError(
            f"{file}: state: {str(written)!r} is relative to the file's folder, where "
            f"it does not exist; the working directory has {before}",
            hint=f'move it to {state}, or write state = "{before}"',
        )
    return state


def has_default_file() -> bool:
    """Return whether a command without -c has a configuration that it may look at."""
    return any(map(_is_there, DEFAULT_FILES))


def _is_there(path: FilePath) -> bool | None:
    """Return whether a file exists; None: this user may not enter its folder."""
    try:
        return path.exists()
    except PermissionError:
        return None


def _default_file() -> FilePath:
    closed = None
    for path in DEFAULT_FILES:
        there = _is_there(path)
        if there:
            trust.refuse_strangers_file(path)
            return path
        if there is None:
            closed = path.parent
    nowhere = (
        f"no configuration found: neither ./{DEFAULT_FILES[0]} (or .yaml) nor"
        f" {DEFAULT_FILES[-1]}"
    )
    if closed is not None:
        raise ConfigError(
            f"{nowhere}; this user may not enter {closed.absolute()}",
            hint="run as root, or as the user that owns the configuration; or name "
            "one with -c FILE",
        )
    raise ConfigError(nowhere, hint=_NONE_HERE)


def _validate(
    tables: dict[str, Any], interpolation: Interpolation
) -> tuple[Config | None, list[Problem]]:
    """Return the model of what is well-formed, and the problems of the rest."""
    try:
        return Config.model_validate(tables), []
    except ValidationError as error:
        problems = translate(error, tables, interpolation.pieces.keys())
        whole = _without_broken(tables, error)
    try:
        return Config.model_validate(whole), problems
    except ValidationError:  # pragma: no cover - every broken section is gone
        return None, problems


def _without_broken(tables: Mapping[str, Any], error: ValidationError) -> Any:
    """Copy all but the sections that the error is about."""
    whole = {
        key: dict(table) if isinstance(table, Mapping) else table
        for key, table in tables.items()
    }
    for detail in error.errors(include_url=False):
        part, *names = detail["loc"]
        if part in {"sources", "sinks"} and names:
            whole[str(part)].pop(names[0], None)
        else:
            whole.pop(str(part), None)
    return whole


def _read_topics_files(tables: Mapping[str, Any]) -> list[Problem]:
    """Put each file's topics beside those of its sink, which win."""
    problems = []
    sinks = tables.get("sinks")
    for name, sink in sinks.items() if isinstance(sinks, Mapping) else ():
        file = sink.get("topics_file") if isinstance(sink, Mapping) else None
        topics = sink.setdefault("topics", {}) if file else None
        if not isinstance(file, str) or not isinstance(topics, dict):
            continue
        try:
            text = document.read_text(FilePath(file))
            written = json.loads(text, object_pairs_hook=_distinct)
        except (ConfigError, _NamedTwice) as error:
            problems.append(Problem(("sinks", name, "topics_file"), str(error)))
            continue
        except (ValueError, RecursionError):
            written = None
        if isinstance(written, dict):
            # its own also come first: patterns are tried in their order
            sink["topics"] = {**topics, **written, **topics}
        else:
            complaint = f'{file}: write a JSON object, as {{"orders": {{"name": "t"}}}}'
            problems.append(Problem(("sinks", name, "topics_file"), complaint))
    return problems


class _NamedTwice(Exception):
    """An object of JSON has two fields of one name."""


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in pairs:
        if key in fields:
            raise _NamedTwice(f'names "{key}" twice: write each once')
        fields[key] = value
    return fields


def _secrets(tables: Mapping[str, Any], interpolation: Interpolation) -> frozenset[str]:
    found = set(secret.collect(tables))
    for path, pieces in interpolation.pieces.items():
        found.update(p for p in pieces if _is_secret_piece(path, p, tables))
    return frozenset(value for value in found if len(value) >= secret.SHORTEST)


def _has_plain_secrets(tables: Mapping[str, Any]) -> bool:
    """Return whether the file itself holds one, and not only says where one is."""
    found = secret.collect(without_references(tables))
    return any(text.strip(STAND_IN) for text in found)


def _is_secret_piece(path: Path, piece: str, tables: Mapping[str, Any]) -> bool:
    """Return whether it went where secrets go, and is not shown even masked.

    A host that ${env:} put into a DSN is not a secret, and logs have to name it.
    """
    key = next((step for step in reversed(path) if isinstance(step, str)), "")
    if is_secret_key(key):
        return True
    if key not in secret.WHOLE_KEYS:
        return False
    value: Any = tables
    for step in path:
        value = value[step]
    return piece not in secret.mask_value(key, value)
