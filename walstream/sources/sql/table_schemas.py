"""Schemas of one polled table's records, in each sink whose records have any."""

from collections.abc import Mapping
from typing import Final

from walstream.config import KafkaSinkConfig
from walstream.formats.encodings.subject import FramedPart
from walstream.sources.debezium_options import registry_of
from walstream.sources.sql.database.shape import SqlTableShape
from walstream.sources.sql.row_form import row_form

_LOOK_AGAIN_S: Final = 60.0

PartsBySink = Mapping[str, tuple[FramedPart, ...]]


class TableSchemas:
    """Schemas of a table's shape by sink; of one thread."""

    def __init__(
        self,
        sinks: Mapping[str, KafkaSinkConfig],
        source: str,
        table: str,
        topics: Mapping[str, str],
    ) -> None:
        """`source` and `table` are as records name them; `topics` are by sink."""
        self._sinks = {
            name: sink for name, sink in sinks.items() if registry_of(sink) is not None
        }
        self._source = source
        self._table = table
        self._topics = topics
        self._made: tuple[SqlTableShape, PartsBySink] | None = None

    @property
    def renew_s(self) -> float | None:
        """After how long to look for new columns; None: no sink has schemas."""
        return _LOOK_AGAIN_S if self._sinks else None

    def parts(self, shape: SqlTableShape) -> PartsBySink:
        """Return the schemas of a shape, by sink.

        Raises ConfigError for names that an encoding does not take.
        """
        # the very shape: types are no part of what makes two of them equal
        if self._made is None or self._made[0] is not shape:
            found = {name: self._of(name, shape) for name in self._sinks}
            self._made = shape, found
        return self._made[1]

    def _of(self, sink: str, shape: SqlTableShape) -> tuple[FramedPart, ...]:
        config, topic = self._sinks[sink], self._topics[sink]
        form = row_form(config, self._source, self._table, topic, shape)
        return () if form is None else form.parts()
