"""The types of single keys: what each refuses, in words that say what would be right.

Text in the file stays text; only what came from a WALSTREAM__ variable
(EnvironmentText) is read as the type that its key wants. What needs a second key to
judge is left to `check` and `topology`.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from walstream import plugins
from walstream.config import dsn, engine_url
from walstream.config.condition import condition
from walstream.config.quantity import byte_size, duration, show_duration, show_size

_Name = TypeVar("_Name", bound=str)

IDENTIFIER_BYTES: Final = 63  # NAMEDATALEN - 1
INSERT_SUFFIX: Final = "_insert"  # the publication's twin, for tables without identity
TOPIC_LENGTH: Final = 249
HIGHEST_PORT: Final = 65535
SHORTEST_TOKEN: Final = 16
FORMATS: Final = ("op", "event", "tungsten", "debezium", "debezium_row", "row")

_TOPIC: Final = re.compile(rf"[a-zA-Z0-9._-]{{1,{TOPIC_LENGTH}}}")
_POINTER: Final = re.compile(r"(?:/(?:[^/~]|~[01])*)+")
_TEMPLATE: Final = re.compile(r"(?:[a-zA-Z0-9._-]|\{(?:source|schema|table)\})*")
_AFTER: Final = re.compile(r"after:-?[0-9]{1,20}")
_LISTEN: Final = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):([0-9]{1,5})")


class EnvironmentText(str):
    """A value from a WALSTREAM__ variable: text whose type its key decides."""

    __slots__ = ()


def read_override(text: str) -> object:
    """Read the text as a TOML value where it is one; else it stays as it is."""
    try:
        document = tomllib.loads(f"value = {text}")
    except (tomllib.TOMLDecodeError, RecursionError):
        return str(text)
    value = document.pop("value")
    if document or not isinstance(value, bool | int | float | str | list | dict):
        return str(text)
    return value


class Section(BaseModel):
    """A table of the file: unknown keys and other types are refused."""

    model_config = ConfigDict(
        extra="forbid", strict=True, frozen=True, hide_input_in_errors=True
    )

    @model_validator(mode="before")
    @classmethod
    def _type_overrides(cls, table: object) -> object:
        if not isinstance(table, Mapping):
            return table
        return {name: cls._typed(name, value) for name, value in table.items()}

    @classmethod
    def _typed(cls, name: str, value: object) -> object:
        if not isinstance(value, EnvironmentText):
            return value
        field = cls.model_fields.get(name)
        wanted = field.annotation if field else str
        if wanted in {str, Path} or get_origin(wanted) is Literal:
            return str(value)
        return read_override(value)


def _refuse(complaint: str) -> None:
    raise ValueError(complaint)


def _dsn(written: str) -> str:
    dsn.parse(written)
    return written


def _url(written: str) -> str:
    engine_url.parse(written)
    return written


def _command(words: list[str]) -> list[str]:
    if words and not words[0].strip():
        _refuse("has no command: write the program first, then its arguments")
    if any("\0" in word for word in words):
        _refuse("holds a NUL character")
    return words


def _slot(name: str) -> str:
    if not re.fullmatch(r"[a-z0-9_]{1,63}", name):
        _refuse("is not a valid slot name: write 1 to 63 of a-z, 0-9 and _")
    return name


def _publication(name: str) -> str:
    limit = IDENTIFIER_BYTES - len(INSERT_SUFFIX)
    if not 1 <= len(name.encode()) <= limit:
        _refuse(
            f"is not a valid publication name: write 1 to {limit} bytes, so that its "
            f"twin <publication>{INSERT_SUFFIX} fits PostgreSQL's {IDENTIFIER_BYTES} "
            "too"
        )
    return name


def table_pattern(pattern: str) -> str:
    """Return it; raise ValueError where no table can match it."""
    if not re.search(r"[.*?]", pattern):
        _refuse(
            "cannot match a table, because patterns are compared with schema.table: "
            'write "public.orders", or "*.orders" for every schema'
        )
    return pattern


def _topic(name: str) -> str:
    if not _TOPIC.fullmatch(name) or name in {".", ".."}:
        _refuse(
            f"is not a valid topic name: write 1 to {TOPIC_LENGTH} of a-z, A-Z, 0-9, "
            "dot, _ and -, and not . or .."
        )
    return name


def _source_topic(name: str) -> str:
    _topic(name.replace("{source}", "x"))
    return name


def _message_topic(template: str) -> str:
    if template:
        filled = template.replace("{source}", "x").replace("{prefix}", "x")
        _topic(filled)
    return template


def _json_pointer(pointer: str) -> str:
    if pointer and not _POINTER.fullmatch(pointer):
        _refuse(
            'is not a JSON pointer (RFC 6901): write "/id", or "/order/id" for a field '
            "of a field; ~ is ~0 in it, and a slash of a name is ~1"
        )
    return pointer


def _template(template: str) -> str:
    if not _TEMPLATE.fullmatch(template):
        _refuse(
            "is not a valid template: write letters, digits, dot, _ and -, and no "
            "other braces than {source}, {schema} and {table}"
        )
    if template and "{" not in template:
        _topic(template)
    return template


def _value_template(template: str) -> str:
    if not _TOPIC.fullmatch(template.replace("{value}", "x")):
        _refuse(
            "is not a valid template: write letters, digits, dot, _ and -, and no "
            "other braces than {value}"
        )
    return template


def _listen(address: str) -> str:
    found = _LISTEN.fullmatch(address)
    if address and (not found or int(found[2]) > HIGHEST_PORT):
        _refuse('is not a valid address: write "host:port", or "" to switch it off')
    return address


def _token(token: str) -> str:
    if not re.fullmatch(r"[\x21-\x7e]*", token):
        _refuse("cannot be sent in a header: write ASCII letters, digits and signs")
    if token and len(token) < SHORTEST_TOKEN:
        _refuse(
            f"has fewer than {SHORTEST_TOKEN} characters, which can be guessed:"
            " openssl rand -hex 16 makes one"
        )
    return token


def is_loopback(address: str) -> bool:
    """Return whether only this machine can reach `host:port`."""
    host = address.rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _not_empty(names: list[str] | None) -> list[str] | None:
    if names is not None and (not names or "" in names):
        _refuse("is empty: name at least one, or leave the key out")
    return names and _distinct(names)


def _distinct(names: list[_Name]) -> list[_Name]:
    if "" in names:
        _refuse("has an empty name in it: leave it out")
    if len(set(names)) < len(names):
        _refuse("has an entry twice: write each once")
    return names


def _format(name: str) -> str:
    # packages are looked for only then: that reads the metadata of all
    if name not in FORMATS and name not in (added := plugins.names(plugins.FORMATS)):
        last = f"{', '.join(added)} or" if added else "or"
        known = ", ".join(FORMATS)
        _refuse(f"is not a known format: write {known}, {last} one that a package adds")
    return name


def _start(written: str) -> str:
    if written not in {"beginning", "end"} and not _AFTER.fullmatch(written):
        _refuse(
            'is not a valid start: write "beginning", "end" or "after:KEY", as in '
            '"after:0"'
        )
    return written


def _property(value: object) -> str:
    """Return the texts that librdkafka and Spark take."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, Mapping):
        raise ValueError(  # noqa: TRY004 - pydantic reports a ValueError alone
            'is a table: a key with a dot needs quotes, as in "bootstrap.servers"'
        )
    raise ValueError("write a text, a number, true or false")


def _path(value: object) -> object:
    return Path(value) if isinstance(value, str) and value else value


def _or(word: str, read: Callable[[str], str]) -> Callable[[str], str]:
    return lambda written: written if written == word else read(written)


def _heartbeat(written: object) -> float:
    return 0.0 if written == "" else duration(written)


def _positive(number: Any) -> Any:
    if number <= 0:
        _refuse("is 0: write more")
    return number


_DURATION_TEXT: Final = PlainSerializer(show_duration, return_type=str)
_TEXT_SCHEMA: Final = WithJsonSchema({"type": "string"})

Duration = Annotated[float, BeforeValidator(duration), _DURATION_TEXT, _TEXT_SCHEMA]
PositiveDuration = Annotated[Duration, AfterValidator(_positive)]
OptionalDuration = Annotated[
    float,
    BeforeValidator(_heartbeat),
    PlainSerializer(lambda s: show_duration(s) if s else "", return_type=str),
    _TEXT_SCHEMA,
]
ByteSize = Annotated[
    int,
    BeforeValidator(byte_size),
    PlainSerializer(show_size, return_type=str),
    _TEXT_SCHEMA,
]
PositiveByteSize = Annotated[ByteSize, AfterValidator(_positive)]
Folder = Annotated[
    Path, BeforeValidator(_path), PlainSerializer(str, return_type=str), _TEXT_SCHEMA
]

PasswordCommand = Annotated[list[str], AfterValidator(_command)]
Dsn = Annotated[str, AfterValidator(_dsn)]
EngineUrl = Annotated[str, AfterValidator(_url)]
SlotName = Annotated[str, AfterValidator(_slot)]
PublicationName = Annotated[str, AfterValidator(_publication)]
TablePattern = Annotated[str, AfterValidator(table_pattern)]
TopicName = Annotated[str, AfterValidator(_topic)]
OptionalTopicName = Annotated[str, AfterValidator(_or("", _topic))]
TopicTemplate = Annotated[str, AfterValidator(_template)]
ValueTemplate = Annotated[str, AfterValidator(_value_template)]
ColumnName = Annotated[str, StringConstraints(min_length=1)]
Token = Annotated[str, AfterValidator(_token)]
ListenAddress = Annotated[str, AfterValidator(_listen)]
Condition = Annotated[str, AfterValidator(condition)]
TableName = Annotated[str, StringConstraints(min_length=1)]
StartKey = Annotated[str, AfterValidator(_start)]
Names = Annotated[list[str], AfterValidator(_not_empty)]
DistinctNames = Annotated[list[str], AfterValidator(_distinct)]
Format = Annotated[str, AfterValidator(_format)]
Embedded = Annotated[
    list[Literal["schema", "table", "committime"]], AfterValidator(_distinct)
]
OptionalNames = Annotated[list[str] | None, AfterValidator(_not_empty)]
StopOrTopic = Annotated[str, AfterValidator(_or("stop", _topic))]
MessageKey = Annotated[str, AfterValidator(_json_pointer)]
MessageTopic = Annotated[str, AfterValidator(_message_topic)]
SourceTopic = Annotated[str, AfterValidator(_source_topic)]
TransactionInfo = Annotated[
    str, AfterValidator(_or("none", _or("records", _source_topic)))
]
PoisonPolicy = Annotated[str, AfterValidator(_or("stop", _or("skip", _topic)))]
Properties = dict[
    str,
    Annotated[
        str,
        BeforeValidator(_property),
        WithJsonSchema({"type": ["string", "number", "boolean"]}),
    ],
]
