"""Schemas of records, by their ids: each is asked of the registry once.

A registry that is away, or answers as none does, is waited for. Which records are read
is not its say: only a schema that it does not know makes a record unreadable, and only
after it had time to learn of it from its leader.
"""

import logging
import threading
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, NoReturn, TypeGuard
from urllib.parse import unquote, urlsplit

from consumer.errors import SchemasAway, SchemasRefused
from walstream.errors import ConfigError, WalstreamError
from walstream.formats.debezium.decode import Schemas, field_schemas
from walstream.formats.encodings.op.document import OpDocument
from walstream.formats.encodings.readers import PROTOBUF, SchemaReader, reader_of
from walstream.formats.encodings.row.document import RowDocument
from walstream.pipeline.backoff import Backoff
from walstream.telemetry import runtime

NO_NULL: Final = "walstream.no_null"
"""In the schema of a column: a null of it is the type's empty value."""
RegistryProperties = Mapping[str, object]
"""The properties of Confluent's SchemaRegistryClient: `url`, and how to log in."""

_DEFAULTS: Final[RegistryProperties] = {"timeout": 10.0, "max.retries": 0}
_NUMBERS: Final = {"timeout", "max.retries", "retries.wait.ms", "retries.max.wait.ms"}
_LONGEST_S: Final = 30.0  # between questions
_LEARN_S: Final = 5.0  # in which a follower hears of a schema
_ASK_AGAIN_S: Final = 0.5
_REMEMBERED: Final = 1000  # ids that it did not know
_MOST: Final = 300  # characters of what it says
_LOGIN: Final = "basic.auth.user.info"
_REFUSALS: Final = {401, 403}
_NOT_FOUND: Final = 404
_log = logging.getLogger(__name__)


class KnownSchema(NamedTuple):
    """The reader of one id, and what is behind it: columns, an op, or a row."""

    reader: SchemaReader
    columns: Schemas
    op: OpDocument | None = None  # of the format `op`
    row: RowDocument | None = None  # of the format `row`


class SchemaRegistry:
    """One registry; of several threads."""

    def __init__(self, properties: RegistryProperties) -> None:
        """Raise ConfigError for properties that the library does not take."""
        try:
            from confluent_kafka import schema_registry  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise ConfigError(
                f"registry= needs a library that is not there: {error.name}",
                hint='pip install "walstream[registry]", or that extra of'
                " walstream-consumer",
            ) from None
        self._library = schema_registry
        self.where = _shown(properties.get("url"))
        self._secrets = [*_secrets(properties)]
        self._properties = {**_DEFAULTS, **_typed(properties)}
        login = _login(str(properties["url"]))
        if login is not None and _LOGIN not in properties:
            # the library beneath logs the address of each request
            self._properties |= {"url": self.where, _LOGIN: login}
        self._known: dict[int, KnownSchema | WalstreamError] = {}
        self._missed: dict[int, float] = {}  # since when
        self._lock = threading.Lock()
        self._backoff = Backoff(first_s=0.5, longest_s=_LONGEST_S)
        self._next_question = 0.0
        self._why = ""
        self._client: Any = self._made()

    def schema(self, number: int) -> KnownSchema:
        """Return what reads records of this id.

        Raises SchemasAway, SchemasRefused, and WalstreamError for an id that says
        nothing.
        """
        known = self._known.get(number)
        if known is None:
            with self._lock:
                known = self._known.get(number) or self._asked(number)
        if isinstance(known, WalstreamError):
            raise known
        return known

    def close(self) -> None:
        """Close its connections; a later question opens new ones."""
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _made(self) -> Any:
        try:
            return self._library.SchemaRegistryClient(self._properties)
        except (ValueError, TypeError, OSError) as error:
            raise ConfigError(
                f"registry= has a property that is not right: {self._said(error)}",
                hint="it takes the properties of Confluent's SchemaRegistryClient",
            ) from None

    def _asked(self, number: int) -> KnownSchema | WalstreamError:
        now = runtime.monotonic()
        if now < self._next_question:
            raise SchemasAway(self._why, self._next_question - now)
        if self._client is None:
            try:
                self._client = self._made()
            except ConfigError as error:  # a certificate that is being replaced
                self._be_away(str(error.args[0]))
        try:
            found = self._client.get_schema(number)
        except self._library.SchemaRegistryError as error:
            self._meet(number, error)
        except Exception as error:  # noqa: BLE001 - any of its libraries'
            # httpx's, of JSON that is none: the library does not say which
            self._be_away(self._said(error))
        text = getattr(found, "schema_str", None)
        if not isinstance(text, str):
            self._be_away("an answer without a schema")
        if self._why:
            _log.info("registry %s answers", self.where)
        self._backoff.reset()
        self._next_question, self._why = 0.0, ""
        known = self._known[number] = self._read(number, text, found.schema_type)
        return known

    def _read(
        self, number: int, text: str, kind: str | None
    ) -> KnownSchema | WalstreamError:
        try:
            reader = reader_of(kind, text)
        except WalstreamError as error:
            what = f"schema {number} of registry {self.where}"
            return WalstreamError(f"{what}: {error.args[0]}")
        if OpDocument.is_of(reader.schema):
            return KnownSchema(reader, {}, OpDocument(reader.schema))
        if RowDocument.is_of(reader.schema):
            return KnownSchema(reader, {}, row=RowDocument(reader.schema))
        fields = reader.schema if "fields" in reader.schema else {"fields": ()}
        columns = field_schemas(fields)
        if kind == PROTOBUF and _lacks_nulls(reader):
            columns = {name: {**one, NO_NULL: True} for name, one in columns.items()}
        return KnownSchema(reader, columns)

    def _meet(self, number: int, error: Any) -> NoReturn:
        status, code = error.http_status_code, error.error_code
        said = "" if code in {None, -1} else f" {self._said(error.error_message)}"
        if status in _REFUSALS:
            raise SchemasRefused(
                f"registry {self.where} refuses to give schema {number}: HTTP {status}"
                f"{said}",
                hint='set registry["basic.auth.user.info"], or "bearer.auth.…", and'
                " grant the user to read schemas",
            )
        # a page of another server has no code, and a wrong path of this one its own
        if status == _NOT_FOUND and code not in {None, -1, status}:
            self._miss(number)
        self._be_away(f"HTTP {status}{said}")

    def _miss(self, number: int) -> NoReturn:
        """Raise for an id that it does not know, or not yet: followers learn late."""
        now = runtime.monotonic()
        if len(self._missed) > _REMEMBERED:
            self._missed.clear()
        since = self._missed.setdefault(number, now)
        if now - since < _LEARN_S:
            raise SchemasAway(
                f"registry {self.where} does not know schema {number} yet",
                _ASK_AGAIN_S,
            )
        raise WalstreamError(
            f"registry {self.where} does not know its schema {number}",
            hint="check that registry= is the one of who wrote it, and restore the"
            " schema if it was deleted",
        )

    def _be_away(self, why: str) -> NoReturn:
        self._drop()  # it keeps answers, those of another server, too
        wait_s = self._backoff.next()
        self._next_question = runtime.monotonic() + wait_s
        self._why = f"registry {self.where} gives no schema: {why}"
        _log.warning("%s; asked again in %.1f s", self._why, wait_s)
        raise SchemasAway(self._why, wait_s)

    def _said(self, error: object) -> str:
        text = " ".join(str(error).split()) or type(error).__name__
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text[:_MOST]


def _lacks_nulls(reader: SchemaReader) -> bool:
    """Return whether Debezium's own optional field is none in a converter's schema."""
    made = {one["field"]: one for one in reader.schema.get("fields", ())}
    return made.get("ts_ms", {}).get("optional") is False


def registry_of(properties: RegistryProperties | None) -> SchemaRegistry | None:
    """Return the registry of a consumer, if it has one."""
    return None if properties is None else SchemaRegistry(properties)


def _shown(url: object) -> str:
    """Return which registry it is, without who logs in."""
    shown = []
    for one in url.split(",") if isinstance(url, str) else ():
        parts = urlsplit(one.strip())
        if parts.scheme not in {"http", "https"} or not parts.netloc:
            break
        host = parts.netloc.rpartition("@")[2]
        shown.append(f"{parts.scheme}://{host}{parts.path.rstrip('/')}")
    else:
        if shown:
            return ",".join(shown)
    raise ConfigError(
        "registry= has no address of a registry",
        hint='registry={"url": "http://HOST:8081"}',
    )


def _login(url: str) -> str | None:
    """Return who logs in, as the first address has it."""
    told = urlsplit(url.partition(",")[0].strip())
    if told.username is None or told.password is None:
        return None
    return f"{unquote(told.username)}:{unquote(told.password)}"


def _typed(properties: RegistryProperties) -> RegistryProperties:
    """Return numbers as such, where they come from a file."""
    return {
        name: float(value) if name in _NUMBERS and _is_number(value) else value
        for name, value in properties.items()
    }


def _is_number(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and value.replace(".", "", 1).isdecimal()


def _secrets(properties: RegistryProperties) -> Iterable[str]:
    """Yield what no text may have: all but addresses, and who logs in there."""
    for name, value in properties.items():
        if not isinstance(value, str) or not value:
            continue
        for one in value.split(",") if name in {"url", "proxy"} else ():
            login = urlsplit(one.strip()).netloc.rpartition("@")[0]
            for part in (login, *login.split(":")):
                yield from (part, unquote(part)) if part else ()
        if name not in {"url", "proxy"} and not name.endswith(".location"):
            yield value
            yield from (part for part in value.split(":") if part)
