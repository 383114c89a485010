"""The ids of one sink's schemas.

Asked where a table is met first, in threads of their own: the streaming loop asks
whether they are known, and never waits. What a registry gave is kept in the state
folder, so that one that is away stops nothing that was registered before. While it
answers, what is kept does not count: another registry, or one that was set back, has
other ids.
"""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Final

import structlog

from walstream.config.registry import STOP, SUBJECT, Registry
from walstream.errors import RETRIED, Repair, Restart, Transient, WalstreamError
from walstream.formats.encodings.subject import FramedPart, SchemaId, SubjectSchema
from walstream.kafka.registry.client import RegistryClient
from walstream.kafka.registry.commands import relax
from walstream.kafka.registry.errors import (
    RegistryAway,
    RegistryRefused,
    SchemaIncompatible,
)
from walstream.kafka.registry.id_patrol import IdPatrol
from walstream.kafka.registry.id_store import IdStore
from walstream.kafka.registry.registrar import Registrar
from walstream.kafka.registry.schema_difference import differing
from walstream.pipeline.outage import Outage
from walstream.pipeline.ports import StateStore
from walstream.telemetry import runtime
from walstream.telemetry.fields import ERROR, HINT, SINK

_OF: Final = "the schema registry"
_AT_ONCE: Final = 16  # questions
_THREADS: Final = 64  # the others wait for the disk, together
_IN_TURN: Final = 256  # that wait for those, of tables of a first start
_AGAIN_S: Final = 1.0
_SILENT_S: Final = 3.0  # no answer to any: somebody is to know, before it times out
_LOOK_AGAIN_S: Final = 30.0
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Changed:
    schema: SubjectSchema
    found: SchemaId  # now


class SchemaIds:
    """Ids by schema; called by the sink's loop alone, but for its own threads."""

    def __init__(
        self,
        sink: str,
        told: Registry,
        positions: StateStore,
        disown: Callable[[], None] = lambda: None,
        client: Callable[[Registry], RegistryClient] = RegistryClient,
    ) -> None:
        """Ask nothing yet; `disown` what Kafka has where ids are others now.

        Raises ConfigError for a client that cannot be made.
        """
        self._disown = disown
        self._sink = sink
        self._told = told
        self._stored = IdStore(sink, told, positions)
        self._client = client(told)
        self._registrar = Registrar(self._client)
        self._threads = runtime.thread_pool(_THREADS, thread_name_prefix="registry")
        self._turns = threading.Semaphore(_AT_ONCE)
        self._looker = runtime.thread_pool(1, thread_name_prefix="registry-look")
        self._known: dict[str, SchemaId] = {}
        self._asked: dict[str, Future[SchemaId]] = {}
        self._asked_at = 0.0  # since when it was asked all the time
        self._retry_at = 0.0
        self._why: Outage | None = None
        self._said: set[str] = set()  # reasons that the log has, of this outage
        self._missing: set[str] = set()  # digests of what is waited for
        self._closed = runtime.event()
        self._changed: dict[str, _Changed] = {}  # by the schema's digest
        self._lost: set[int] = set()  # ids that mean something else by now
        patrol = IdPatrol(self._client, self._numbers, self._closed, self._lose)
        runtime.start_thread(patrol.run, "registry-ids")

    def have(self, parts: Iterable[FramedPart]) -> bool:
        """Let records carry the ids of their schemas; False: some are not known yet.

        They are asked for, and again after an outage. Raises what only an operator can
        end.
        """
        found: list[FramedPart] = []
        missing: list[FramedPart] = []
        for part in parts:
            known = part.schema.digest in self._known or self._find(part.schema)
            (found if known else missing).append(part)
        self.look()  # before any record carries another id than before
        for part in found:
            part.set(self._known[part.schema.digest])
        # others may wait for theirs: what is known says nothing about them
        self._missing.difference_update(one.schema.digest for one in found)
        self._missing.update(one.schema.digest for one in missing)
        return not missing

    def of(self, parts: Iterable[FramedPart]) -> dict[str, SchemaId]:
        """Return ids that are known, by the digests of their schemas."""
        return {one.schema.digest: self._known[one.schema.digest] for one in parts}

    @property
    def outage(self) -> Outage | None:
        """Reason why it does not answer, where something waits for that."""
        return self._why if self._missing else None

    def look(self) -> None:
        """Raise Restart once a kept id turned out to be another one.

        Where keys have another id, rows are in other partitions: what Kafka has says
        nothing of those that come again.
        """
        changed = list(self._changed.values())  # other threads may add some meanwhile
        if not (changed or self._lost):
            return
        what = f"no longer what it had of id {min(self._lost, default=0)}"
        if changed:
            subject = min(one.schema.subject for one in changed)
            what = f"another id for the schema of {subject!r}"
        self._disown()
        # behind that: else nobody would know; each of the others may be another one,
        # too, and one start is enough for all
        self._stored.replace((one.schema, one.found) for one in changed)
        raise Restart(
            f"the registry has {what}: the stream begins again with what it has, and "
            "leaves nothing out"
        )

    def _find(self, schema: SubjectSchema) -> bool:
        """Return whether the id is known now; if not, see that it is asked for."""
        digest = schema.digest
        asked = self._asked.get(digest)
        if asked is None:
            if self._why is not None and self._use_kept(schema):
                return True
            self._begin(schema)
            return False
        if not asked.done():
            return self._silent and self._do_without(schema)
        del self._asked[digest]
        try:
            self._known[digest] = asked.result()
        except (Transient, RegistryRefused) as error:
            self._wait(error)
            return self._use_kept(schema)
        self._answered()
        return True

    def _begin(self, schema: SubjectSchema) -> None:
        """Ask for an id, unless many are asked for, or nobody answers."""
        now = runtime.monotonic()
        if now >= self._retry_at and len(self._asked) < _IN_TURN:
            if not self._asked:
                self._asked_at = now
            self._asked[schema.digest] = self._threads.submit(self._ask, schema)

    def _do_without(self, schema: SubjectSchema) -> bool:
        """Use the kept id of what is asked for, if one is; say who is waited for."""
        self._wait(
            RegistryAway(
                f"registry {self._client.where} has answered nothing for "
                f"{_SILENT_S:.0f} s",
                hint=RETRIED,
            )
        )
        if not self._use_kept(schema):
            return False
        self._asked.pop(schema.digest).cancel()
        return True

    def _use_kept(self, schema: SubjectSchema) -> bool:
        """Use the id that is kept, if one is; compare it once the registry answers."""
        kept = self._stored.find(schema)
        if kept is None:
            return False
        if kept.doubted:
            self._stored.keep(schema, kept.known)
        self._known[schema.digest] = kept.known
        self._looker.submit(self._compare, schema)
        return True

    @property
    def _silent(self) -> bool:
        """Return whether it has answered nothing for some time, though it was asked."""
        heard_at = max(self._asked_at, self._client.heard_at)
        return runtime.monotonic() - heard_at >= _SILENT_S

    def _ask(self, schema: SubjectSchema) -> SchemaId:
        kept = self._stored.find(schema)
        try:
            with self._turns:
                found = self._answer(schema, "" if kept is None else kept.text)
        except (RegistryAway, RegistryRefused):
            raise
        except WalstreamError as error:
            if kept is None:
                raise
            self._tell_missing(error, kept.id)
            return kept.known
        if kept is not None and kept.known != found:
            self._tell_changed(schema, kept.id, found.number)
            if not kept.doubted:
                self._changed[schema.digest] = _Changed(schema, found)
                return found
        if kept is None or kept.doubted:
            self._stored.keep(schema, found)
        return found

    def _answer(self, schema: SubjectSchema, text: str) -> SchemaId:
        if self._closed.is_set():
            raise RegistryAway("it is asked nothing more")
        try:
            return self._registrar.id_of(schema, text)
        except SchemaIncompatible as error:
            return self._elsewhere(schema, error)

    def _numbers(self) -> list[int]:
        """Return the ids that are in use; from any thread."""
        return sorted({one.number for one in list(self._known.values())})

    def _lose(self, number: int) -> None:
        """Note an id that means something else by now; from any thread."""
        _log.error(
            "the registry has another schema, or none, of an id that is in use: it "
            "was replaced or restored, and records may be read by another schema",
            **{SINK: self._sink},
            id=number,
        )
        self._lost.add(number)

    def _tell_missing(self, error: WalstreamError, kept: int) -> None:
        _log.warning(
            "the registry does not have a schema that it gave an id to: readers may "
            "not find it",
            **{SINK: self._sink, ERROR: str(error.args[0]), HINT: error.hint},
            id=kept,
        )

    def _tell_changed(self, schema: SubjectSchema, kept: int, number: int) -> None:
        _log.error(
            "the registry has another id for a schema than it gave before: it was "
            "replaced or restored, and records of before may be read by another schema",
            **{SINK: self._sink},
            subject=schema.subject,
            before=kept,
            now=number,
        )

    def _elsewhere(self, schema: SubjectSchema, error: SchemaIncompatible) -> SchemaId:
        """Register under another subject, where the operator named one."""
        rule = self._told.on_incompatible
        if rule != STOP:
            other = replace(schema, subject=rule.replace(SUBJECT, schema.subject))
            found = self._registrar.id_of(other)
            _log.warning(
                "schema is registered under another subject: its own refuses it",
                **{SINK: self._sink},
                subject=schema.subject,
                other=other.subject,
            )
            return found
        raise self._refusal(schema, error)

    def _refusal(
        self, schema: SubjectSchema, error: SchemaIncompatible
    ) -> SchemaIncompatible:
        """Return the error with the fields that differ, and what lets them pass."""
        try:
            before = self._client.latest(schema.subject)
        except WalstreamError:
            before = None
        what = differing(before, schema) if before else ""
        said = f"; against the latest version: {what}" if what else ""
        return SchemaIncompatible(
            f"{error.args[0]}{said}",
            hint='or set on_incompatible = "{subject}-2": it goes to that subject then',
            repair=Repair(
                command=relax(self._told, schema.subject), then="walstream run"
            ),
        )

    def _compare(self, schema: SubjectSchema) -> None:
        """Look at a kept id that is in use, as soon as the registry answers."""
        while not self._closed.is_set():
            try:
                self._ask(schema)
            except (RegistryAway, RegistryRefused):
                self._closed.wait(_LOOK_AGAIN_S)
                continue
            return

    def _wait(self, error: WalstreamError) -> None:
        self._retry_at = runtime.monotonic() + _AGAIN_S
        why = str(error.args[0])
        refused = isinstance(error, RegistryRefused)
        if why not in self._said:
            self._said.add(why)
            said = {ERROR: why, HINT: error.hint}
            _log.warning(
                "waiting for the schema registry", **{SINK: self._sink}, **said
            )
        self._why = Outage(why, error.hint, refused=refused, of=_OF)

    def _answered(self) -> None:
        if self._why is not None:
            _log.info("the schema registry answers", **{SINK: self._sink})
            self._why = None
            self._said.clear()

    def close(self) -> None:
        """Ask nothing more."""
        self._closed.set()
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._looker.shutdown(wait=False, cancel_futures=True)
        self._client.close()
