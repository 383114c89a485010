"""A configuration in the making, and an account of each key of the connector's."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Literal

from walstream.admin.connector.connector_file import ConnectorFile
from walstream.admin.connector.topic_route import TopicRoute
from walstream.config.secret_keys import MASK, is_secret_key
from walstream.config.template import toml_text

Section = Literal[
    "source", "sink", "debezium", "registry", "messages", "producer", "topic_config"
]
_HEADERS: Final[Mapping[Section, str]] = {
    "source": "sources.{source}",
    "sink": "sinks.kafka",
    "debezium": "sinks.kafka.debezium",
    "registry": "sinks.kafka.registry",
    "messages": "sinks.kafka.messages",
    "producer": "sinks.kafka.producer",
    "topic_config": "sinks.kafka.topic_config",
}


TomlValue = str | bool | int | Sequence[str] | Mapping[str, str]
Table = dict[str, TomlValue]
"""Keys of one section, as TOML holds them."""


class Fate(Enum):
    TRANSLATED = "translated"
    NO_EFFECT = "without effect in walstream"
    TO_DECIDE = "to decide"


@dataclass(frozen=True, slots=True)
class KeyReport:
    """The account of one key."""

    key: str  # as the file has it
    fate: Fate
    text: str  # to what; why not; or what differs for readers, and what to do
    sql: str = ""  # that is to run


@dataclass(slots=True)
class Draft:
    """A configuration in the making; values are written as TOML holds them."""

    file: ConnectorFile
    source: str = "app"
    tables: dict[Section, Table] = field(
        default_factory=lambda: {section: {} for section in _HEADERS}
    )
    topics: dict[str, Table] = field(default_factory=dict)
    handlers: list[Table] = field(default_factory=list)
    origins: dict[tuple[str, str], str] = field(default_factory=dict)
    # tables that alone have topics, of a publication that holds more; None: all
    chosen: list[str] | None = None
    partition_keys: dict[str, list[str]] = field(default_factory=dict)
    routes: list[TopicRoute] = field(default_factory=list)
    _reports: dict[str, list[KeyReport]] = field(default_factory=dict)

    def get(self, key: str, default: str = "") -> str:
        """Return the value of a connector's key; an empty one is none."""
        return self.file.entries.get(key, "") or default

    def text(self, section: Section, name: str) -> str:
        """Return a text that was written."""
        return str(self.tables[section][name])

    def has(self, key: str) -> bool:
        return key in self.file.entries

    def put(
        self, key: str, section: Section, name: str, value: TomlValue, remark: str = ""
    ) -> None:
        """Write a key of walstream's, and say that `key` became it.

        A producer's text is one that References wrote; any other means itself.
        """
        if isinstance(value, str) and section != "producer":
            value = plain(value)
        self.tables[section][name] = value
        if not self.has(key):
            return
        self.origins[section, name] = self.file.shown(key)
        spelled = f'"{name}"' if "." in name else name
        what = f"[{self.header(section)}] {spelled} = {toml_text(value)}"
        self.became(key, what, remark)

    def header(self, section: Section) -> str:
        """Name a section as the configuration does."""
        return _HEADERS[section].format(source=self.source)

    def became(self, key: str, what: str, remark: str = "") -> None:
        """Report what became of a key that is translated."""
        self._add(key, Fate.TRANSLATED, f"{what}; {remark}" if remark else what)

    def inert(self, key: str, why: str) -> None:
        """Report why a key has no effect here."""
        self._add(key, Fate.NO_EFFECT, why)

    def decide(self, key: str, what: str, sql: str = "") -> None:
        """Report what differs for readers, and what an operator has to do about it."""
        self._add(key, Fate.TO_DECIDE, what, sql)

    def translated(self) -> list[str]:
        """Return the keys that became something, as Connect names them."""
        return [
            key
            for key, reports in self._reports.items()
            if any(one.fate is Fate.TRANSLATED for one in reports)
        ]

    def unspoken(self) -> list[str]:
        """Return the keys that nothing is said of, as Connect names them."""
        return [key for key in self.file.entries if key not in self._reports]

    def reports(self) -> Iterator[KeyReport]:
        """Yield what is said of each key, in the order of the file."""
        known = [*self.file.entries, *self._reports]
        for key in dict.fromkeys(known):
            yield from self._reports.get(key, ())
        for key, why in self.file.foreign.items():
            yield KeyReport(_safe(key), Fate.NO_EFFECT, why)
        for key in sorted(self.file.twice):
            text = "is written twice: the last value counts, as in Java"
            yield KeyReport(_safe(key), Fate.NO_EFFECT, text)

    def _add(self, key: str, fate: Fate, text: str, sql: str = "") -> None:
        report = KeyReport(_safe(self.file.shown(key)), fate, text, sql)
        found = self._reports.setdefault(key, [])
        if report not in found:
            found.append(report)


def plain(text: str) -> str:
    """Return a text that the configuration reads unchanged."""
    return text.replace("${", "$${")


def _safe(key: str) -> str:
    """Return a key without the salt that Debezium has in some."""
    name, salted, _ = key.partition(".with.salt.")
    return f"{name}{salted}{MASK}" if salted else key


def is_secret(key: str) -> bool:
    """Return whether a value may not stand in the configuration."""
    named = is_secret_key(key) or key.endswith("ssl.keystore.key")  # a private key
    return named or ".with.salt." in key
