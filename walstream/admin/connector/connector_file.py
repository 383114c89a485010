"""Reads what configures a connector: one shape of it, whatever file it came from.

A .properties file is Kafka Connect's, or the application.properties of Debezium Server;
a .json is what Connect's REST interface takes and gives: {"name": …, "config": {…}}, or
the configuration alone.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from walstream.admin.connector import java_properties
from walstream.errors import ConfigError

CONNECTOR: Final = "io.debezium.connector.postgresql.PostgresConnector"
LARGEST_FILE: Final = 1 << 20
_SERVER: Final = "debezium.source."
_SERVER_SINK: Final = "debezium.sink.kafka.producer."
_PROFILE: Final = "%prod."  # Quarkus's, of a server that runs
_OTHER_PROFILE: Final = "of another profile than prod"
_OWN: Final = "Debezium Server's own"
_SERVER_CONVERTERS: Final = {
    "json": "org.apache.kafka.connect.json.JsonConverter",
    "jsonbytearray": "org.apache.kafka.connect.json.JsonConverter",
}
_CONVERTERS: Final = ("key.converter", "value.converter", "header.converter")
_OF_REST: Final = frozenset({"name", "config", "tasks", "type"})


@dataclass(frozen=True, slots=True)
class ConnectorFile:
    """A connector's properties, by the names that Kafka Connect gives them."""

    entries: Mapping[str, str] = field(repr=False)
    spelled: Mapping[str, str]  # by those names: the key that the file has
    foreign: Mapping[str, str]  # other keys of the file or worker, and why they stay
    worker_known: bool  # whether its defaults are in `entries`
    twice: frozenset[str] = frozenset()  # keys, as the file has them
    server: bool = False  # Debezium Server's

    def shown(self, key: str) -> str:
        """Return the key as the file has it."""
        return self.spelled.get(key, key)


def read(path: Path, worker: Path | None = None) -> ConnectorFile:
    """Read a connector's file, and the properties of the worker that runs it.

    Raises ConfigError where one cannot be read, or is not of Debezium's PostgreSQL
    connector.
    """
    content = _content(path)
    twice: list[str] = []
    if path.suffix.lower() == ".json":
        found = _Found(_json(path, content))
    else:
        found = _Found(dict(_properties(path, content, "iso-8859-1", twice)))
        if any(key.removeprefix(_PROFILE).startswith(_SERVER) for key in found.entries):
            twice.clear()
            found = _of_server(dict(_properties(path, content, "utf-8", twice)))
    _refuse_others(path, found.entries)
    _leave_lone_options(found)
    if worker is not None:
        if found.server:
            raise ConfigError(
                f"{path} is of Debezium Server, which has no worker",
                hint="leave --worker out",
            )
        entries = dict(_properties(worker, _content(worker), "iso-8859-1", []))
        _add_worker(found, entries)
    return ConnectorFile(
        entries={key: value.strip() for key, value in found.entries.items()},
        spelled=found.spelled,
        foreign=found.foreign,
        worker_known=worker is not None or found.server,
        twice=frozenset(twice),
        server=found.server,
    )


@dataclass(slots=True)
class _Found:
    entries: dict[str, str] = field(repr=False)
    spelled: dict[str, str] = field(default_factory=dict)
    foreign: dict[str, str] = field(default_factory=dict)
    server: bool = False

    def add(self, key: str, value: str, spelled: str) -> None:
        self.entries[key] = value
        self.spelled[key] = spelled


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    if len(content) > LARGEST_FILE:
        raise ConfigError(f"{path}: is larger than {LARGEST_FILE >> 20} MiB")
    return content


def _properties(
    path: Path, content: bytes, encoding: str, twice: list[str]
) -> list[tuple[str, str]]:
    try:
        found = java_properties.read(content.decode(encoding))
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: is not UTF-8 text") from None
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None
    keys = [key for key, _ in found]
    twice += sorted({key for key in keys if keys.count(key) > 1})
    return found


def _json(path: Path, content: bytes) -> dict[str, str]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        raise ConfigError(f"{path}: is not valid JSON") from None
    if isinstance(document, dict) and isinstance(document.get("config"), dict):
        if unknown := sorted(document.keys() - _OF_REST):
            raise ConfigError(
                f"{path}: {unknown[0]!r} stands beside name and config: "
                "Kafka Connect has no such key there"
            )
        document = {"name": document.get("name", ""), **document["config"]}
    if not isinstance(document, dict):
        raise ConfigError(
            f'{path}: is not a connector: write {{"name": …, "config": …}}'
        )
    return {key: _text(path, key, value) for key, value in document.items()}


def _text(path: Path, key: str, value: Any) -> str:
    """Return the text that Kafka Connect makes of a value."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    raise ConfigError(f"{path}: {key} is neither a text nor a number")


def _of_server(entries: Mapping[str, str]) -> _Found:
    """Return the properties of Debezium Server, by the names of Kafka Connect."""
    found = _Found({}, server=True)
    # what is of the profile counts more, wherever it stands
    for spelled in sorted(entries, key=lambda one: one.startswith(_PROFILE)):
        key, value = spelled.removeprefix(_PROFILE), entries[spelled]
        if name := _connect_name(key):
            found.add(name, value, spelled)
        elif key == "debezium.sink.type" and value.strip() == "kafka":
            found.foreign[spelled] = "the sink's kind"
        elif key == "debezium.sink.type":
            raise ConfigError(
                f"debezium.sink.type is {value.strip()!r}: walstream writes to Kafka"
            )
        else:
            is_other = key.startswith("%")
            found.foreign[spelled] = _OTHER_PROFILE if is_other else _OWN
    for side in _CONVERTERS[:2]:
        form = found.entries.get(side, "json").strip()
        spelled = found.spelled.get(side, f"debezium.format.{side.partition('.')[0]}")
        found.add(side, _SERVER_CONVERTERS.get(form.lower(), form), spelled)
        for key in [key for key in found.entries if key.startswith("both.")]:
            name = f"{side}.{key.removeprefix('both.')}"
            if name not in found.entries:
                found.add(name, found.entries[key], found.spelled[key])
    for key in [key for key in found.entries if key.startswith("both.")]:
        del found.entries[key]
    return found


def _connect_name(key: str) -> str:
    """Return Connect's name of a key of Debezium Server; "": it has none.

    What stands for keys and values alike begins with `both.`.
    """
    if key.startswith(_SERVER_SINK):
        return f"producer.override.{key.removeprefix(_SERVER_SINK)}"
    for prefix in (_SERVER, "debezium.transforms", "debezium.predicates"):
        if key.startswith(prefix):
            name = key.removeprefix("debezium.")
            name = name.removeprefix("source.")
            return "" if name.startswith("offset") else name
    if key.startswith("debezium.format."):
        name = key.removeprefix("debezium.format.")
        side, dot, rest = name.partition(".")
        if side in {"key", "value", "header"}:
            return f"{side}.converter{dot}{rest}"
        return f"both.{name}"
    return ""


def _refuse_others(path: Path, entries: Mapping[str, str]) -> None:
    name = entries.get("connector.class", "").strip()
    if name in {CONNECTOR, "PostgresConnector", "Postgres"}:
        return
    if not name:
        raise ConfigError(
            f"{path}: has no connector.class: it is not a connector's",
            hint=f"walstream translates {CONNECTOR}",
        )
    raise ConfigError(
        f"{path}: connector.class is {name!r}",
        hint=f"walstream translates {CONNECTOR}; each database has its own file",
    )


def _leave_lone_options(found: _Found) -> None:
    """Put aside options of a converter that the connector does not name."""
    for side in _CONVERTERS:
        if side in found.entries:
            continue
        for key in [key for key in found.entries if key.startswith(f"{side}.")]:
            del found.entries[key]
            found.foreign[found.spelled.get(key, key)] = (
                f"Kafka Connect reads it only beside {side}: the worker's converter "
                "counts, with the worker's options"
            )


def _add_worker(found: _Found, entries: Mapping[str, str]) -> None:
    """Add what a worker gives to a connector that says nothing of it."""
    own = frozenset(found.entries)
    for key, value in entries.items():
        spelled = f"{key} (worker)"
        side = next(
            (one for one in _CONVERTERS if key == one or key.startswith(f"{one}.")), ""
        )
        if side:
            if side in own:
                found.foreign[spelled] = f"the connector has its own {side}"
            else:
                found.add(key, value, spelled)
        elif key == "bootstrap.servers" or key.startswith("producer."):
            name = f"producer.override.{key.removeprefix('producer.')}"
            if name in own:
                found.foreign[spelled] = f"the connector has its own {name}"
            elif key.startswith("producer.") or name not in found.entries:
                found.add(name, value, spelled)
        elif key.startswith("config.providers"):
            found.add(key, value, spelled)
        else:
            found.foreign[spelled] = (
                "the worker's own: walstream is a process by itself"
            )
