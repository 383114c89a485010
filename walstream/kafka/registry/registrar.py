"""Asks a registry for the id of a schema, and makes the text for that where it lacks.

In protobuf fields have numbers, which come from the versions that the subject has: they
are looked at first. Where two instances register at once, the later one sees what came
between, and numbers again.
"""

import contextlib
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from walstream.errors import WalstreamError
from walstream.formats.encodings.languages import NumberText, language_of_kind
from walstream.formats.encodings.subject import SchemaId, SubjectSchema
from walstream.kafka.registry.client import RegistryClient, SubjectVersion
from walstream.kafka.registry.errors import SchemaIncompatible, SchemaUnregistered

_ATTEMPTS: Final = 20
_VERSIONS: Final = 200  # that are looked at: of those before, numbers are reserved


class Registrar:
    """Registers schemas, or looks them up; from several threads."""

    def __init__(self, client: RegistryClient) -> None:
        self._client = client
        self._versions: dict[str, dict[int, SubjectVersion | None]] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._guard = threading.Lock()

    def id_of(self, schema: SubjectSchema, text: str = "") -> SchemaId:
        """Return what the registry knows a schema by, and register it if that may be.

        `text` is what it had numbers in before. Raises what `RegistryClient.id_of`
        does, and a WalstreamError for a latest version that cannot be read.
        """
        number = _number_of(schema)
        if number is None:
            return SchemaId(self._client.id_of(schema))
        with self._lock(schema.subject):
            with contextlib.suppress(SchemaUnregistered):
                if text:
                    told = replace(schema, text=text)
                    return SchemaId(self._client.lookup(told), text)
            return self._new(schema, number, text)

    def wanted(self, schema: SubjectSchema, *, keep: bool = False) -> SubjectSchema:
        """Return a schema as it would be registered.

        `keep`: with the fields that are gone, which some registries want.
        """
        number = _number_of(schema)
        if number is None:
            return schema
        live, gone = self._look(schema)
        texts = [one.text for one in self._history(schema, live)]
        return _numbered(schema, number, gone, texts, keep=keep)

    def _new(self, schema: SubjectSchema, number: NumberText, text: str) -> SchemaId:
        """Register a schema; `text` is what it had numbers in before.

        Another registry, or one that was set back, may have given those to others.
        """
        outdated: set[int] = set()  # what another's version came before
        found = SchemaId(0)
        live, deleted = self._look(schema)
        gone = [*([text] if text else []), *deleted]
        for attempt in range(_ATTEMPTS):
            before = self._client.versions(schema.subject) if attempt else live
            every = self._history(schema, before)
            texts = [one.text for one in every if one.number not in outdated]
            asked = _numbered(schema, number, gone, texts)
            try:
                found = SchemaId(self._client.id_of(asked), asked.text)
            except SchemaIncompatible:
                if self._client.versions(schema.subject) != before:
                    continue
                kept = _numbered(schema, number, gone, texts, keep=True)
                if kept == asked:
                    raise
                found = SchemaId(self._client.id_of(kept), kept.text)
            is_old = any(one.number == found.number for one in every)
            if is_old or not self._is_late(schema, before, found):
                return found
            outdated.add(found.number)
        return found

    def _is_late(
        self, schema: SubjectSchema, before: Sequence[int], found: SchemaId
    ) -> bool:
        """Return whether another version was registered between those and this one.

        Who comes behind numbers again, and never both.
        """
        after = self._client.versions(schema.subject)
        for version in after:
            if version not in before:
                for one in self._history(schema, [version]):
                    return one.number != found.number
        return False

    def _look(self, schema: SubjectSchema) -> tuple[list[int], list[str]]:
        """Return a subject's versions, and the texts of what was deleted.

        Records have the numbers of those all the same.
        """
        live = self._client.versions(schema.subject)
        every = self._client.versions(schema.subject, deleted=True)
        self._forget(schema.subject, live, every)
        deleted = [one for one in every if one not in live]
        return live, [one.text for one in self._history(schema, deleted)]

    def _forget(self, subject: str, live: Sequence[int], every: Sequence[int]) -> None:
        """Let go of versions that are others by now.

        A subject that was deleted for good begins again with the first, whoever
        registers that.
        """
        seen = self._versions.get(subject)
        if not seen:
            return
        is_other = not {*live, *every}.issuperset(seen.copy())
        if live and live[-1] in seen:
            latest = self._client.version(subject, live[-1])
            is_other |= seen[live[-1]] != latest
        if is_other:
            self._versions[subject] = {}

    def _history(
        self, schema: SubjectSchema, versions: Sequence[int]
    ) -> list[SubjectVersion]:
        """Return versions, the latest last; each is asked for once."""
        found = []
        seen = self._versions.setdefault(schema.subject, {})
        for version in versions[-_VERSIONS:]:
            if version not in seen:
                seen[version] = self._client.version(schema.subject, version)
            one = seen[version]
            if one is not None and one.kind == schema.kind:
                found.append(one)
        return found

    def _lock(self, subject: str) -> threading.Lock:
        """Return what lets one at a time number a subject's schemas."""
        with self._guard:
            return self._locks.setdefault(subject, threading.Lock())


def _numbered(
    schema: SubjectSchema,
    number: NumberText,
    gone: Sequence[str],
    texts: Sequence[str],
    *,
    keep: bool = False,
) -> SubjectSchema:
    """Return a schema with numbers, by the versions it has and those `gone`.

    A `gone` one that cannot be read is as if it had not been.
    """
    history = [*gone, *texts]
    while True:
        try:
            return replace(schema, text=number(schema.text, history, keep=keep))
        except WalstreamError:
            if len(history) == 0 or texts:
                raise
            history.pop()


def _number_of(schema: SubjectSchema) -> NumberText | None:
    language = language_of_kind(schema.kind)
    return None if language is None else language.number
