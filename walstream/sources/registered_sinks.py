"""The sinks of a source whose records have a registry's schemas."""

from collections.abc import Callable, Iterable, Mapping

from walstream.formats.encodings.subject import SchemaId
from walstream.kafka.sink import KafkaSink
from walstream.op import Table
from walstream.records.handlers.chain import Chain, Spec


class RegisteredSinks:
    """Those that are open, for backfills: their tasks ask no registry."""

    def __init__(self) -> None:
        self._sinks: dict[str, tuple[KafkaSink, Chain]] = {}

    def add(self, sink: KafkaSink, handlers: Iterable[Spec]) -> None:
        """Take in a sink; one of the same name, of an earlier stream, is let go."""
        if sink.has_registry:
            self._sinks[sink.name] = sink, Chain(handlers)

    def wait(
        self, wait: Callable[[Callable[[], bool]], None], tables: Iterable[Table]
    ) -> Mapping[str, Mapping[str, SchemaId]]:
        """Return the ids of these tables' schemas, by sink and by the schemas' digests.

        `wait` is called with what has to become true.
        """
        every = list(tables)
        left = [
            (sink, chain.shape(table))
            for sink, chain in self._sinks.values()
            for table in every
            if not chain.is_outbox(table)  # its rows are never read
        ]

        def known() -> bool:
            """Ask for all that are not known, at once."""
            left[:] = [one for one in left if not one[0].have_ids(one[1])]
            return not left

        wait(known)
        return {
            name: {
                digest: found
                for table in every
                if not chain.is_outbox(table)
                for digest, found in sink.ids_of(chain.shape(table)).items()
            }
            for name, (sink, chain) in self._sinks.items()
        }
