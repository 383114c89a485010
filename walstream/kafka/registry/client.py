"""One registry over HTTP: Confluent's client, and its answers as walstream's errors."""

import contextlib
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final, NamedTuple, TypeVar

from walstream.config.registry import Registry
from walstream.config.secret import Secrets, collect
from walstream.errors import RETRIED, ConfigError
from walstream.formats.encodings.subject import SubjectSchema
from walstream.kafka.registry.errors import (
    RegistryAway,
    RegistryReadOnly,
    RegistryRefused,
    SchemaIncompatible,
    SchemaRefused,
    SchemaUnregistered,
)
from walstream.telemetry import runtime

T = TypeVar("T")
_TIMEOUT_S: Final = 10.0
_MOST: Final = 400  # characters of what a registry says
_NOT_THERE: Final = frozenset({40401, 40402, 40403})  # subject, version, schema
_READ_ONLY: Final = 42205
_NO_JSON: Final = -1  # the client's own code
_OF_SCHEMAS: Final = frozenset({HTTPStatus.CONFLICT, HTTPStatus.UNPROCESSABLE_ENTITY})
_NUMBERS: Final = {"timeout", "cache.capacity", "cache.latest.ttl.sec"}
_OURS: Final = {"max.retries": 0}  # who asks asks again, and can be stopped meanwhile


class RegisteredText(NamedTuple):
    """A schema as a registry has it."""

    kind: str  # its word for the language
    text: str


class SubjectVersion(NamedTuple):
    """A version of a subject."""

    number: int  # the schema's id
    kind: str
    text: str  # not letter by letter that which was sent


class RegistryClient:
    """Asks one registry; from several threads."""

    def __init__(self, told: Registry) -> None:
        """Raise ConfigError where the library lacks, or does not take a property."""
        try:
            from confluent_kafka import schema_registry  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise ConfigError(
                f"a schema registry needs a library that lacks: {error.name}",
                hint='pip install "walstream[registry]"',
            ) from None
        self._library = schema_registry
        self.heard_at = 0.0
        """When it answered last, by the clock that nobody sets."""
        self._told = told
        self._secrets = Secrets(frozenset(collect(told.model_dump())))
        properties: dict[str, str | float] = {"timeout": _TIMEOUT_S}
        for name, text in told.client.items():
            properties[name] = _number(name, text) if name in _NUMBERS else text
        if told.client.get("ssl.ca.location", "").lower() == "false":
            properties["ssl.ca.location"] = False
        try:
            self._client = schema_registry.SchemaRegistryClient(
                {**properties, **_OURS, "url": told.url}
            )
        except (ValueError, TypeError, OSError) as error:
            raise ConfigError(
                f"the registry's client cannot be made: {self._said(error)}",
                hint="correct [sinks.NAME.registry.client]",
            ) from None

    @property
    def where(self) -> str:
        """Its address, for people."""
        return self._told.identity

    def id_of(self, schema: SubjectSchema) -> int:
        """Return a schema's id; register it, if that may be.

        Raises RegistryAway, RegistryRefused, SchemaUnregistered, SchemaIncompatible,
        SchemaRefused.
        """
        if not self._told.auto_register:
            return self.lookup(schema)
        text = self._schema(schema)
        late = False
        if self._told.compatibility and not self.has(schema.subject):
            try:
                self._set_level(schema)
            except SchemaUnregistered:  # Apicurio's, of NONE for what is not there yet
                late = True
        try:
            number = self._ask(
                schema, lambda: _id(self._client.register_schema(schema.subject, text))
            )
        except RegistryReadOnly:
            with contextlib.suppress(SchemaUnregistered):
                return self.lookup(schema)  # what is there is no write
            raise
        if late:
            self._set_level(schema)
        return number

    def _set_level(self, schema: SubjectSchema) -> None:
        level = self._told.compatibility
        self._ask(
            schema,
            lambda: self._client.set_compatibility(schema.subject, level=level),
        )

    def reach(self) -> None:
        """Ask for something that each registry has; raise why it does not answer."""
        self._ask(SubjectSchema("of any", ""), self._client.get_schema_types)

    def lookup(self, schema: SubjectSchema) -> int:
        """Return a registered schema's id; SchemaUnregistered: it is not registered."""
        text = self._schema(schema)
        return self._ask(
            schema,
            lambda: _id(self._client.lookup_schema(schema.subject, text).schema_id),
        )

    def has(self, subject: str) -> bool:
        """Return whether a subject has a version."""
        return bool(self.versions(subject))

    def latest(self, subject: str) -> str | None:
        """Return the text of a subject's latest version; None: there is none."""
        versions = self.versions(subject)  # the client keeps what was the latest once
        found = self.version(subject, versions[-1]) if versions else None
        return None if found is None else found.text

    def versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        """Return the numbers of a subject's versions, the latest last.

        `deleted`: also those that were deleted, but for good.
        """
        asked = SubjectSchema(subject, "")
        try:
            found = self._ask(
                asked, lambda: self._client.get_versions(subject, deleted=deleted)
            )
        except SchemaUnregistered:
            return []
        return sorted(found)

    def version(self, subject: str, number: int) -> SubjectVersion | None:
        """Return one of a subject's versions, also a deleted one; None: it is gone."""
        asked = SubjectSchema(subject, "")
        with contextlib.suppress(SchemaUnregistered):
            found = self._ask(
                asked, lambda: self._client.get_version(subject, number, deleted=True)
            )
            text, kind = found.schema.schema_str, found.schema.schema_type
            made = _id(found.schema_id), kind or asked.kind, str(text)
            return SubjectVersion(*made)
        return None

    def schema_of(self, number: int, *, anew: bool = False) -> RegisteredText:
        """Return a schema, for who reads records of this id.

        It is asked for once, unless `anew`: an id means the same for good. Raises
        SchemaUnregistered for one that the registry does not know.
        """
        asked = SubjectSchema(f"of id {number}", "")
        found = self._ask(asked, lambda: self._client.get_schema(number), anew=anew)
        if not isinstance(found.schema_str, str):
            raise self._away("an answer without a schema")
        return RegisteredText(found.schema_type or asked.kind, found.schema_str)

    def fits(self, schema: SubjectSchema) -> bool:
        """Return whether a schema could be the subject's next version."""
        text = self._schema(schema)
        try:
            return bool(
                self._ask(
                    schema,
                    lambda: self._client.test_compatibility(schema.subject, text),
                )
            )
        except SchemaUnregistered:
            return True  # the first version

    def _schema(self, schema: SubjectSchema) -> Any:
        return self._library.Schema(schema.text, schema.kind)

    def _ask(
        self, schema: SubjectSchema, ask: Callable[[], T], *, anew: bool = True
    ) -> T:
        if anew:  # the client keeps all answers: a subject may be another one by now
            self._forget()
        try:
            answer = ask()
        except self._library.SchemaRegistryError as error:
            self.heard_at = runtime.monotonic()
            raise self._error(schema, error) from None
        except (OSError, ValueError) as error:
            # HTML where JSON is expected is a ValueError: a wrong proxy's page; the
            # client keeps what it took for an answer
            self._forget()
            raise self._away(f"no answer of a registry: {self._said(error)}") from None
        except Exception as error:  # noqa: BLE001 - any of its libraries'
            # httpx's errors, a token's: the library says no more of what it raises
            self._forget()
            raise self._away(self._said(error)) from None
        self.heard_at = runtime.monotonic()
        return answer

    def _forget(self) -> None:
        """Let go of what the client keeps: it may be outdated, or was no answer."""
        self._client.clear_caches()  # type: ignore[no-untyped-call]

    def _error(self, schema: SubjectSchema, error: Any) -> Exception:
        status, code = error.http_status_code, error.error_code
        told = error.error_message if code != _NO_JSON else ""
        said = self._said(told) if told else ""
        if status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}:
            return RegistryRefused(
                f"registry {self.where} refuses subject {schema.subject!r}: HTTP "
                f"{status} {said}".strip(),
                hint="correct the login in [sinks.NAME.registry.client], or grant read "
                "and write of the subject; walstream check tries it",
            )
        if status == HTTPStatus.NOT_FOUND and code in _NOT_THERE:
            return SchemaUnregistered(
                f"subject {schema.subject!r} in registry {self.where} does not have "
                "this schema",
                hint="register it (walstream check prints it); walstream waits",
            )
        if status not in _OF_SCHEMAS or code == _NO_JSON:  # a page of a proxy's
            return self._away(f"HTTP {status} {said}".strip())
        if status == HTTPStatus.CONFLICT:
            return SchemaIncompatible(
                f"subject {schema.subject!r} in registry {self.where} refuses the "
                f"schema: it is not compatible with earlier ones: {said}"
            )
        if code == _READ_ONLY:
            return RegistryReadOnly(
                f"registry {self.where} refuses new schemas of subject "
                f"{schema.subject!r}: {said}",
                hint="set its mode to READWRITE",
            )
        return SchemaRefused(
            f"subject {schema.subject!r}: registry {self.where} does not take the "
            f"schema: {said}",
            hint="names of tables and columns that its language does not allow "
            'need adjust and adjust_fields = "avro"',
        )

    def _away(self, why: str) -> RegistryAway:
        return RegistryAway(f"registry {self.where}: {why}", hint=RETRIED)

    def _said(self, error: object) -> str:
        text = " ".join(str(error).split()) or type(error).__name__
        return self._secrets.scrub(text)[:_MOST]

    def close(self) -> None:
        """Close its connections."""
        self._client.close()


def _id(found: object) -> int:
    """Return an id, which has four bytes in a record; raise ValueError for others."""
    if isinstance(found, int) and 0 <= found < 1 << 32:
        return found
    raise ValueError("an id that is not a number of 32 bits")


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ConfigError(f"the registry's {name} is not a number") from None
