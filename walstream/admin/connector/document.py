"""The text of a walstream.toml that was translated: each key with what it was."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from pydantic import BaseModel

from walstream.admin.connector.draft import Draft, Fate, Section, Table, TomlValue
from walstream.config.debezium import Debezium
from walstream.config.messages import Messages
from walstream.config.model import Config
from walstream.config.registry import Registry
from walstream.config.sink import KafkaSinkConfig
from walstream.config.source import PostgresSource
from walstream.config.template import comment, described, key_lines, toml_text

_HEAD: Final = """\
walstream's configuration, translated from the Debezium connector {name} by walstream
init --from. In parentheses: the property that a key comes from. docs/configuration.md
explains every key, docs/migrating/debezium.md the way from one to the other."""
_TO_DECIDE: Final = "To decide before walstream runs:"
_MODELS: Final[Mapping[str, type[BaseModel]]] = {
    "source": PostgresSource,
    "sink": KafkaSinkConfig,
    "debezium": Debezium,
    "registry": Registry,
    "messages": Messages,
}


def write(draft: Draft, *, state: str, insecure: tuple[bool, bool]) -> str:
    """Write the file; `insecure` is of the source, and of the sink."""
    draft.tables["source"] |= {"insecure": True} if insecure[0] else {}
    draft.tables["sink"] |= {"insecure": True} if insecure[1] else {}
    lines = [*_head(draft), "", *key_lines(Config, "state", state), ""]
    sections: list[Section] = ["source", "sink", "debezium", "registry", "messages"]
    for section in sections:
        if draft.tables[section]:
            lines += [*_section(draft, section), ""]
    for table, topic in draft.topics.items():
        lines += [*_plain(f"[sinks.kafka.topics.{toml_text(table)}]", topic), ""]
    for handler in draft.handlers:
        lines += [*_plain("[[sinks.kafka.handlers]]", handler), ""]
    if draft.tables["topic_config"]:
        lines += comment(described(KafkaSinkConfig, "topic_config"))
        lines += [*_section(draft, "topic_config"), ""]
    lines += comment(described(KafkaSinkConfig, "producer"))
    lines += _section(draft, "producer")
    return "".join(f"{line}\n" for line in lines)


def _head(draft: Draft) -> Iterator[str]:
    name = draft.get("name") or draft.text("debezium", "name")
    yield from comment(_HEAD.format(name=json.dumps(name)))
    undecided = [one for one in draft.reports() if one.fate is Fate.TO_DECIDE]
    if undecided:
        yield from comment(_TO_DECIDE)
        for report in undecided:
            yield from comment(f"- {_line(report.key)}: {_line(report.text)}")
            if report.sql:
                yield f"#   {_line(report.sql)}"


def _line(text: str) -> str:
    """Return a text that stays within its comment."""
    return text if text.isprintable() else json.dumps(text)


def _section(draft: Draft, section: Section) -> Iterator[str]:
    yield f"[{draft.header(section)}]"
    model = _MODELS.get(section)
    for key, value in draft.tables[section].items():
        origin = draft.origins.get((section, key), "")
        if model is None:
            yield from _remark(origin)
            yield f"{toml_text(key)} = {toml_text(value)}"
        else:
            told = origin in described(model, key)
            remarks = () if told else _remark(origin, marked=False)
            yield from key_lines(model, key, value, *remarks)


def _remark(origin: str, *, marked: bool = True) -> Iterable[str]:
    text = f"({origin})"
    if origin and text.isprintable():
        return comment(text) if marked else [text]
    return []


def _plain(header: str, keys: Table) -> Iterator[str]:
    yield header
    for key, value in keys.items():
        yield f"{key} = {_written(value)}"


def _written(value: TomlValue) -> str:
    if not isinstance(value, Mapping):
        return toml_text(value)
    pairs = (f"{toml_text(key)} = {toml_text(one)}" for key, one in value.items())
    return f"{{ {', '.join(pairs)} }}"
