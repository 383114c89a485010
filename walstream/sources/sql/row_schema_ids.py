"""Ids of polled tables' schemas, in each sink whose records have any.

Found by a table's own thread, once its shape is known and before its rows are read: so
tasks are given them, and a registry that is away holds up those tables alone whose
shapes it was not told. What was found is kept by `SchemaIds`, over restarts, too.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from walstream.config import KafkaSinkConfig
from walstream.errors import RETRIED
from walstream.formats.encodings.subject import FramedPart, SchemaId
from walstream.kafka.registry.errors import RegistryAway
from walstream.kafka.registry.schema_ids import SchemaIds
from walstream.kafka.topics import Topics
from walstream.pipeline.outage import Outage
from walstream.pipeline.ports import StateStore
from walstream.sources.debezium_options import registry_of
from walstream.telemetry import runtime

_LOOK_EVERY_S: Final = 0.02
_PATIENCE_S: Final = 2.0  # within it a registry that is known to be away is asked again

Parts = Mapping[str, Iterable[FramedPart]]
"""The schemas of a table's records, by sink."""
IdsBySink = Mapping[str, Mapping[str, SchemaId]]
"""By sink, and by the schemas' digests."""


class RowSchemaIds:
    """The ids of one source's tables; from several threads."""

    def __init__(self, made: Mapping[str, SchemaIds]) -> None:
        self._made = made
        self._lock = threading.Lock()  # theirs is one thread, and none of them waits

    def of(self, parts: Parts, stopped: Callable[[], bool]) -> IdsBySink | None:
        """Wait for the ids of a table's schemas; None: a stop came first.

        Raises RegistryAway, and what only an operator can end; Restart where the
        registry is another one.
        """
        began = runtime.monotonic()
        while True:
            with self._lock:
                missing = [
                    ids for sink, ids in self._asked(parts) if not ids.have(parts[sink])
                ]
                if not missing:
                    found = self._asked(parts)
                    return {sink: ids.of(parts[sink]) for sink, ids in found}
                outages = [ids.outage for ids in missing]
            if stopped():
                return None
            why = next((one for one in outages if one is not None), None)
            if why is not None and runtime.monotonic() - began > _PATIENCE_S:
                raise RegistryAway(why.why, hint=why.hint or RETRIED)
            runtime.sleep(_LOOK_EVERY_S)

    def _asked(self, parts: Parts) -> list[tuple[str, SchemaIds]]:
        return [(sink, self._made[sink]) for sink in parts]

    def outage(self, sink: str) -> Outage | None:
        """Return why a sink's registry does not answer, where a table waits for it."""
        ids = self._made.get(sink)
        return None if ids is None else ids.outage

    def close(self) -> None:
        """Ask nothing more."""
        for ids in self._made.values():
            ids.close()


def row_schema_ids(
    sinks: Mapping[str, KafkaSinkConfig],
    positions: StateStore,
    topics: Mapping[str, Topics],
) -> RowSchemaIds:
    """Make them for the sinks of a source; raise ConfigError where a client lacks."""
    made = {}
    for name, sink in sinks.items():
        registry = registry_of(sink)
        if registry is not None:
            made[name] = SchemaIds(name, registry, positions, topics[name].disown)
    return RowSchemaIds(made)
