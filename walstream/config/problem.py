"""Problems of keys, and the one error that lists them all.

A problem never shows the value of a key that may hold a secret, nor one that came out
of a variable or a file.
"""

import difflib
import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from walstream import plugins
from walstream.config import handler
from walstream.config.model import Config, Http, Spark
from walstream.config.secret import WHOLE_KEYS, scrub_shapes
from walstream.config.secret_keys import is_secret_key
from walstream.config.sink import (
    DiscardSink,
    KafkaSinkConfig,
    LogSink,
    MappedTopic,
    PackageSink,
)
from walstream.config.source import (
    KafkaSource,
    PackageSource,
    PolledTable,
    PostgresSource,
    SqlSource,
)
from walstream.errors import ConfigError

Path = tuple[str | int, ...]

SHOWN: Final = 60  # characters of a value
PRIVATE_TABLES: Final = frozenset({"producer", "consumer", "conf", "options"})

_SECTIONS: Final = {
    ("sources", "postgres"): PostgresSource,
    ("sources", "sql"): SqlSource,
    ("sources", "kafka"): KafkaSource,
    ("sinks", "kafka"): KafkaSinkConfig,
    ("sinks", "log"): LogSink,
    ("sinks", "discard"): DiscardSink,
    ("sources", "package"): PackageSource,
    ("sinks", "package"): PackageSink,
}
_HANDLERS: Final = {**handler.BUILT, "package": handler.PackageHandler}
_WANTED: Final = {
    "missing": "is missing",
    "string_type": "write a text in quotes",
    "bool_type": "write true or false, without quotes",
    "int_type": "write a whole number, without quotes",
    "list_type": 'write a list, as in ["one", "two"]',
    "dict_type": "write a table of keys and values",
    "model_type": "write a table of keys and values",
    "model_attributes_type": "write a table of keys and values",
    "is_instance_of": "write the path of a folder",
    "string_too_short": "is empty: write one",
    "too_short": "is empty: name at least one",
    "string_pattern_mismatch": "is not a URL: write scheme://user@host/database",
}


class Problem(NamedTuple):
    path: Path
    complaint: str  # what is wrong, and what would be right

    def __str__(self) -> str:
        return f"{show_path(self.path)}: {self.complaint}"


def show_path(path: Path) -> str:
    """Write it as TOML would: sinks.kafka.topics."public.inventory".name."""
    shown = ""
    for step in path:
        if isinstance(step, int):
            shown += f"[{step}]"
        else:
            bare = re.fullmatch(r"[A-Za-z0-9_-]+", step)
            shown += "." * bool(shown) + (step if bare else json.dumps(step))
    return shown


def error_of(place: str, problems: Iterable[Problem]) -> ConfigError:
    """One error for all of them, each once, in the order of their paths."""
    unique = list(dict.fromkeys(map(str, problems)))
    if len(unique) == 1:
        return ConfigError(f"{place}: {unique[0]}")
    lines = "".join(f"\n  {line}" for line in unique)
    return ConfigError(f"{place}: {len(unique)} problems{lines}")


def translate(
    error: ValidationError, document: Mapping[str, Any], hidden: Collection[Path]
) -> list[Problem]:
    """Name each problem by the file's own keys; hidden paths show no value."""
    problems = []
    for detail in error.errors(include_url=False):
        path = _path_of(detail["loc"], document)
        no_table = not isinstance(detail["input"], Mapping)
        if detail["type"] == "union_tag_not_found" and no_table:
            detail["type"] = "model_type"
        if detail["type"] in {"union_tag_invalid", "union_tag_not_found"}:
            path = (*path, "kind")
        complaint = _complaint(detail, path, document)
        value = "" if path in hidden else _shown_value(path, detail)
        problems.append(Problem(path, _join(value, complaint)))
    return problems


def suggest(name: str, known: Iterable[str]) -> str:
    """Name the nearest known key, or all where none is near."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    if near:
        return f"did you mean {near[0]}?"
    return f"known are {', '.join(names)}" if names else "there is none yet"


def is_private(path: Path) -> bool:
    """Return whether the value at this path may be, or hold, a secret."""
    names = [step for step in path if isinstance(step, str)]
    named = 1 if path[0] == "http" else 2  # behind the name of a source or sink
    return (
        not PRIVATE_TABLES.isdisjoint(names[2:] if path[0] != "spark" else names)
        or bool(WHOLE_KEYS & set(names[2:]))
        or any(is_secret_key(name) for name in names[named:])
    )


def _path_of(location: tuple[int | str, ...], document: Mapping[str, Any]) -> Path:
    """Leave out what pydantic adds: the kind that chose the union's member."""
    path = tuple(step for step in location if step != "[key]")
    if path[0] in {"sources", "sinks"} and len(path) > len(("sinks", "name")):
        table = document[str(path[0])][path[1]]
        if isinstance(table, Mapping) and path[2] in {table.get("kind"), "package"}:
            path = path[:2] + path[3:]
    match path:
        case ("sinks", str(), "handlers", int(), str() as tag, *rest) if (
            tag in _HANDLERS
        ):
            return (*path[:4], *rest)
    return path


def _complaint(detail: ErrorDetails, path: Path, document: Mapping[str, Any]) -> str:
    context = detail.get("ctx", {})
    match detail["type"]:
        case "value_error":
            complaint = str(context["error"])
        case "extra_forbidden":
            complaint = f"is unknown: {suggest(str(path[-1]), _known(path, document))}"
        case "literal_error":
            complaint = f"write {context['expected']}"
        case "union_tag_invalid":
            complaint = f"write {_kinds(path)}"
        case "union_tag_not_found":
            complaint = f"is missing: write {_kinds(path)}"
        case "greater_than_equal":
            complaint = f"write a number from {context['ge']} on"
        case "less_than_equal":
            complaint = f"write a number up to {context['le']}"
        case other:
            complaint = _WANTED.get(other, detail["msg"])
    return complaint


def _kinds(path: Path) -> str:
    if "handlers" in path:
        kinds = [*handler.BUILT, *plugins.names(plugins.HANDLERS)]
        return ", ".join(f"'{kind}'" for kind in kinds)
    group = plugins.SINKS if path[0] == "sinks" else plugins.SOURCES
    kinds = [kind for part, kind in _SECTIONS if part == path[0] and kind != "package"]
    return ", ".join(f"'{kind}'" for kind in (*kinds, *plugins.names(group)))


def _known(path: Path, document: Mapping[str, Any]) -> Iterable[str]:
    """Name the keys that may stand beside this one."""
    match path[:-1]:
        case ("http",):
            section: Any = Http
        case ("spark",):
            section = Spark
        case ("sources", _, "tables", _):
            section = PolledTable
        case ("sinks", _, "topics", _):
            section = MappedTopic
        case ("sinks", name, "handlers", int(number)):
            kind = document["sinks"][name]["handlers"][number]["kind"]
            section = _HANDLERS.get(kind, handler.PackageHandler)
        case (("sources" | "sinks") as part, name):
            kind = document[str(part)][name]["kind"]
            section = _SECTIONS.get((str(part), kind), _SECTIONS[str(part), "package"])
        case _:
            section = Config
    return list(section.model_fields)


def _shown_value(path: Path, detail: ErrorDetails) -> str:
    value = detail.get("input")
    plain = isinstance(value, str | int | float | bool)
    if not plain or is_private(path) or detail["type"] == "extra_forbidden":
        return ""
    text = json.dumps(scrub_shapes(value) if isinstance(value, str) else value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


def _join(value: str, complaint: str) -> str:
    """Return what stands there: "5s" is not a size: …; is 5: write …."""
    if not value or complaint.startswith("is empty"):
        return complaint
    if complaint.startswith("write"):
        return f"is {value}: {complaint}"
    return f"{value} {complaint}"
